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
  const typeset = () => window.MathJax?.startup?.promise?.then(() => watch("equation", "article div.math mjx-container"));
  if (document.readyState === "complete") typeset();
  else window.addEventListener("load", typeset);

  // Plotly draws its sliders for a pointer alone: a slider of the browser takes their place.
  for (const plot of document.querySelectorAll(".plotly-graph-div")) {
    const slider = plot.layout?.sliders?.[0];
    if (!slider) continue;
    const label = document.createElement("label"), input = document.createElement("input");
    const shown = document.createElement("output");
    label.className = "sepnb-slider";
    Object.assign(input, { type: "range", min: 0, max: slider.steps.length - 1, step: 1, value: slider.active || 0 });
    const prefix = slider.currentvalue?.prefix || "";
    const move = () => {
      const step = slider.steps[input.value];
      Plotly[step.method](plot, ...step.args);
      shown.textContent = step.label;
      input.setAttribute("aria-valuetext", prefix + step.label);
    };
    label.append(prefix, input, shown);
    plot.after(label);
    Plotly.relayout(plot, { sliders: [] }).then(move);
    input.addEventListener("input", move);
  }
});
