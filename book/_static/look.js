// What a page needs to be used by keyboard and on a phone. Without this script all of it still reads.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  // A box that scrolls sideways takes the focus, has a name, and shows at its edges that there is more.
  const mark = (box, kind) => {
    const more = box.scrollWidth - box.clientWidth;
    box.classList.toggle("sepnb-more-right", more - box.scrollLeft > 1);
    box.classList.toggle("sepnb-more-left", more > 1 && box.scrollLeft > 1);
    if (more > 1 && !box.hasAttribute("data-scrolls")) {
      box.dataset.scrolls = kind;
      box.tabIndex = 0;
      if (!box.matches("figure")) box.setAttribute("role", "region");
      box.setAttribute("aria-label", `${kind}, scrolls sideways`);
      box.addEventListener("scroll", () => mark(box, kind), { passive: true });
    }
  };
  const kinds = new Map();
  const sizes = new ResizeObserver((seen) => seen.forEach(({ target }) => mark(target, kinds.get(target))));
  const watch = (kind, where) => {
    for (const box of document.querySelectorAll(where)) {
      kinds.set(box, kind);
      sizes.observe(box);
    }
  };
  watch("table", "article :is(.sepnb-table, .pst-scrollable-table-container)");
  watch("figure", "article figure");
  watch("code", "article :is(.cell_input, .cell_output) pre");
  // Between a formula and the sign after it, or the parenthesis before it, no line ends.
  const inline = () => {
    for (const formula of document.querySelectorAll("article span.math")) {
      const [before, after] = [formula.previousSibling, formula.nextSibling];
      const opens = before?.nodeType === Node.TEXT_NODE ? /[(\u201c"]+$/.exec(before.data)?.[0] ?? "" : "";
      const closes = after?.nodeType === Node.TEXT_NODE ? /^[.,;:!?)\u201d"]+/.exec(after.data)?.[0] ?? "" : "";
      if (!opens && !closes) continue;
      if (opens) before.data = before.data.slice(0, -opens.length);
      if (closes) after.data = after.data.slice(closes.length);
      const together = document.createElement("span");
      together.className = "sepnb-together";
      formula.replaceWith(together);
      together.append(opens, formula, closes);
    }
  };
  const typeset = () =>
    window.MathJax?.startup?.promise?.then(() => {
      watch("equation", "article div.math mjx-container");
      inline();
    });
  if (document.readyState === "complete") typeset();
  else window.addEventListener("load", typeset);
});
