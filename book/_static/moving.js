// What every figure shares that a reader can move: controls with labels, a chart and a map of values, and a
// sentence that says what is to be seen. No framework; a figure is a function that is given its box.
//
//     sepnb.figure("name", (box, data) => sepnb.panel(box, {controls, draw}));
//
// builds the figure in every <div data-draw="name">, with the JSON that stands in it. Colours are classes of
// sepnb.css, so that both modes follow; what is drawn is as wide as its box, so that letters keep their size.
(() => {
  "use strict";
  const kinds = {};
  let made = 0;

  const element = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  const drawing = (name, attributes = {}, text = "") => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    return node;
  };

  /** A number as it is read: a few digits, a true minus sign, thousands apart. */
  const told = (value, digits = 3) => {
    const rounded = Number(value.toPrecision(digits));
    const text = Math.abs(rounded) >= 10000 ? rounded.toLocaleString("en") : String(rounded);
    return text.replace("-", "\u2212");
  };

  // --- controls ---------------------------------------------------------------------------------------------

  /** The control that is described: {name, label, min, max, step, value, text} is a slider, {name, label,
   * options, value} a list, {name, label, rows, value} a text. Returns the node and how to read it. */
  const control = (one) => {
    const id = `moving-${(made += 1)}`;
    const label = element("label", { for: id }, one.label);
    if (one.options) {
      const list = element("select", { id });
      const fill = (options, value) => {
        list.replaceChildren(...options.map(([key, words]) => element("option", { value: key }, words)));
        list.value = value;
      };
      fill(one.options, one.value);
      return {
        node: element("div", { class: "moving-list" }, label, list),
        input: list,
        read: () => list.value,
        fill,
      };
    }
    if (one.rows) {
      const area = element("textarea", { id, rows: one.rows, spellcheck: "false", maxlength: one.most });
      area.value = one.value;
      return {
        node: element("div", { class: "moving-text" }, label, area),
        input: area,
        read: () => area.value,
      };
    }
    const range = element("input", { id, type: "range", min: one.min, max: one.max, step: one.step || 1 });
    const said = element("output", { for: id }),
      text = one.text || ((value) => told(value, 6));
    const say = () => {
      said.textContent = text(Number(range.value));
      range.setAttribute("aria-valuetext", said.textContent);
    };
    range.value = one.value;
    say();
    range.addEventListener("input", say);
    const set = ({ max, value }) => {
      if (max !== undefined) range.max = max;
      if (value !== undefined) range.value = value;
      say();
    };
    const node = element("div", { class: "moving-slider" }, label, range, said);
    return { node, input: range, read: () => Number(range.value), set };
  };

  /** Controls above, what is drawn below, and under it a sentence that screen readers are told.
   *
   * `draw(state, stage)` fills the stage anew from the values of the controls by their names, and returns the
   * sentence. It is called once a frame at most, and where the width of the box changes. */
  const panel = (box, { controls, draw, stage = element("div", { class: "moving-stage" }) }) => {
    const parts = Object.fromEntries(controls.map((one) => [one.name, control(one)]));
    const said = element("p", { class: "moving-said", "aria-live": "polite" });
    const form = element(
      "form",
      { class: "moving-controls" },
      ...Object.values(parts).map((part) => part.node),
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    box.append(form, stage, said);
    let waiting = false,
      width = 0;
    const show = () => {
      waiting = false;
      width = stage.clientWidth;
      const state = Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, part.read()]));
      said.textContent = draw(state, stage, parts);
    };
    const soon = () => {
      if (!waiting) requestAnimationFrame(show);
      waiting = true;
    };
    form.addEventListener("input", soon);
    new MutationObserver(soon).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    new ResizeObserver(() => {
      if (stage.clientWidth !== width) soon();
    }).observe(stage);
    show();
    return { parts, show };
  };

  // --- charts -----------------------------------------------------------------------------------------------

  /** Round steps between two numbers, about `count` of them. */
  const ticks = ([low, high], count) => {
    const rough = (high - low) / count,
      power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((one) => one * power >= rough);
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++) found.push(at * step);
    return found;
  };

  const decades = ([low, high]) => {
    const found = [];
    for (let at = Math.ceil(Math.log10(low) - 1e-9); 10 ** at <= high * (1 + 1e-9); at++)
      found.push(10 ** at);
    return found;
  };

  /** A scale from values to pixels, with its ticks; `log` for a logarithmic one. */
  const scale = ({ range, log, at }, [from, to], count) => {
    const of = log ? Math.log : (value) => value,
      low = of(range[0]),
      high = of(range[1]);
    const place = (value) => from + ((of(value) - low) / (high - low)) * (to - from);
    return { place, ticks: at || (log ? decades(range) : ticks(range, count)) };
  };

  /** Lines over axes as an SVG.
   *
   * x, y: {range, label, log, at, text}; series: {x, y, look, words, points, end}, `look` a class, `words` its
   * name, which stands at its end or above the drawing; marks: {x or y, words, below}, dashed lines; `bands`: {from,
   * to, look} along x. `alt` is what the drawing shows, in words. */
  const chart = (
    stage,
    { x, y, series, marks = [], bands = [], alt, height = 240, width = stage.clientWidth },
  ) => {
    const svg = drawing("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "moving-chart" });
    svg.append(drawing("title", {}, alt), drawing("desc", {}, alt));
    const left = 52,
      right = width - 12,
      bottom = height - 40,
      top = 22;
    const across = scale(x, [left, right], Math.max(3, width / 90)),
      up = scale(y, [bottom, top], 5);
    const text = (at, down, words, anchor = "middle", look = "ink") =>
      svg.append(drawing("text", { x: at, y: down, "text-anchor": anchor, class: look }, words));
    const line = (x1, y1, x2, y2, look) => svg.append(drawing("line", { x1, y1, x2, y2, class: look }));
    for (const band of bands) {
      const [a, b] = [band.from, band.to].map((at) => Math.min(right, Math.max(left, across.place(at))));
      svg.append(
        drawing("rect", {
          x: a,
          y: top,
          width: Math.max(0, b - a),
          height: bottom - top,
          class: `${band.look} soft`,
        }),
      );
    }
    for (const at of up.ticks) {
      line(left, up.place(at), right, up.place(at), "grid");
      text(left - 7, up.place(at) + 4, (y.text || told)(at), "end", "faint");
    }
    for (const at of across.ticks) {
      const down = across.place(at),
        last = down > right - 14;
      text(last ? width - 2 : down, bottom + 17, (x.text || told)(at), last ? "end" : "middle", "faint");
    }
    line(left, bottom, right, bottom, "axis");
    text((left + right) / 2, height - 5, x.label);
    text(4, 13, y.label, "start");
    const inside = (value) => Math.min(bottom + 1, Math.max(top - 1, value));
    for (const one of series) {
      const dots = [...one.x].map((value, k) => [across.place(value), inside(up.place(one.y[k]))]);
      const kept = dots.filter(([a, b]) => Number.isFinite(a + b) && a <= right + 1 && a >= left - 1);
      if (!one.points) {
        const path = kept.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(" ");
        svg.append(drawing("polyline", { points: path, class: `line ${one.look}` }));
      } else {
        for (const [cx, cy] of kept)
          svg.append(drawing("circle", { cx, cy, r: one.points, class: `dot ${one.look}` }));
      }
    }
    // Words come last, so that they lie over the lines.
    for (const mark of marks) {
      if (mark.x !== undefined && mark.x >= x.range[0] && mark.x <= x.range[1]) {
        const at = across.place(mark.x),
          beyond = at > right - 90;
        line(at, top, at, bottom, "mark");
        text(at + (beyond ? -4 : 4), top + 8, mark.words || "", beyond ? "end" : "start", "faint");
      } else if (mark.y !== undefined) {
        line(left, up.place(mark.y), right, up.place(mark.y), "mark");
        text(left + 6, up.place(mark.y) + (mark.below ? 15 : -5), mark.words || "", "start", "faint");
      }
    }
    stage.append(svg);
    const named = series.filter((one) => one.words);
    if (named.length > 1) stage.append(legend(named));
    return svg;
  };

  const legend = (series) =>
    element(
      "p",
      { class: "moving-legend" },
      ...series.map((one) => element("span", { class: one.look }, one.words)),
    );

  /** A colour of the page, as a canvas needs it: [red, green, blue]. */
  const colour = (box, name) => {
    const text = getComputedStyle(box).getPropertyValue(name).trim();
    return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  };

  /** A map of values [rows, cols] on a canvas, a cell a pixel, stretched by the page. Signed values: one colour
   * above 0 and another below, as strong as they are large beside `reach`; what is not finite stays empty. */
  const heatMap = (stage, { rows, cols, values, reach, title, alt }) => {
    const canvas = element("canvas", { width: cols, height: rows, role: "img", "aria-label": alt });
    const context = canvas.getContext("2d"),
      image = context.createImageData(cols, rows);
    const above = colour(stage, "--moving-above"),
      below = colour(stage, "--moving-below");
    for (let k = 0; k < rows * cols; k++) {
      if (!Number.isFinite(values[k])) continue;
      const strength = Math.min(1, Math.abs(values[k]) / (reach || 1));
      image.data.set([...(values[k] > 0 ? above : below), 255 * strength], 4 * k);
    }
    context.putImageData(image, 0, 0);
    const figure = element("div", { class: "moving-map" }, element("p", {}, title), canvas);
    stage.append(figure);
    return figure;
  };

  // --- the page ---------------------------------------------------------------------------------------------

  const figure = (kind, build) => {
    kinds[kind] = build;
  };

  document.addEventListener("DOMContentLoaded", () => {
    for (const box of document.querySelectorAll("[data-draw]")) {
      const held = box.querySelector("script[type='application/json']");
      kinds[box.dataset.draw](box, held ? JSON.parse(held.textContent) : {});
    }
  });

  window.sepnb = Object.assign(window.sepnb || {}, {
    figure,
    panel,
    chart,
    heatMap,
    legend,
    element,
    drawing,
    told,
    ticks,
  });
})();
