// The filter of the page of claims. Without this script every claim stands on the page, folded.
document.addEventListener("DOMContentLoaded", () => {
  const claims = [...document.querySelectorAll("details.sepnb-claim")];
  if (!claims.length) return;
  const word = (claim) => claim.querySelector("summary .sepnb-badge").textContent.split(",")[0];
  const form = document.createElement("form");
  form.className = "sepnb-filter";
  form.dataset.interactive = "";
  const options = [...new Set(claims.map(word))].sort().map((one) => `<option>${one}</option>`);
  form.innerHTML =
    '<label>Words <input type="search" name="words" placeholder="such as gap, RoPE"></label>' +
    `<label>Verdict <select name="verdict"><option value="">any</option>${options.join("")}</select></label>` +
    '<label><input type="checkbox" name="late"> rule after its records</label>' +
    '<output aria-live="polite"></output>';
  claims[0].closest("section").before(form);

  const show = () => {
    const words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const claim of claims) {
      const text = claim.textContent.toLowerCase();
      const wanted =
        words.every((one) => text.includes(one)) &&
        (!form.verdict.value || word(claim) === form.verdict.value) &&
        (!form.late.checked || claim.classList.contains("sepnb-late"));
      claim.hidden = !wanted;
      shown += wanted;
    }
    for (const group of new Set(claims.map((claim) => claim.closest("section")))) {
      group.hidden = claims.every((claim) => claim.hidden || claim.closest("section") !== group);
    }
    form.querySelector("output").textContent = `${shown} of ${claims.length}`;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();

  // A link to a claim opens it, whatever was chosen before.
  const open = () => {
    const claim = claims.find((one) => one.id === decodeURIComponent(location.hash.slice(1)));
    if (!claim) return;
    if (claim.hidden) form.reset();
    show();
    claim.open = true;
    claim.scrollIntoView();
  };
  window.addEventListener("hashchange", open);
  open();
});
