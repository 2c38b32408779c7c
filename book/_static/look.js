// What a page needs to be used by keyboard and on a phone. Without this script all of it still reads.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  // A box that scrolls sideways takes the focus, has a name, and shows at its edges that there is more.
  const kinds = {
    "table": ".sepnb-table, .pst-scrollable-table-container",
    "equation": "div.math",
    "figure": "figure",
    "code": ".cell_input pre, .cell_output pre",
  };
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
  const boxes = Object.entries(kinds).flatMap(([kind, where]) =>
    [...document.querySelectorAll(where)].filter((box) => box.closest("article")).map((box) => [box, kind]));
  const kindOf = new Map(boxes);
  const sizes = new ResizeObserver((seen) => seen.forEach(({ target }) => mark(target, kindOf.get(target))));
  boxes.forEach(([box]) => sizes.observe(box));
  window.MathJax?.startup?.promise?.then(() => boxes.forEach(([box, kind]) => mark(box, kind)));

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
