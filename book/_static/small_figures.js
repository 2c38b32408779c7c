// The small figures of chapters 4, 5, 6, 15 and 16: controls and drawing. Formulas are those of formulas.js, and what
// figures have in common is moving.js.
(() => {
  "use strict";
  const { figure, panel, chart, legend, drawing, element, told, formulas: F } = sepnb;
  const range = (count) => [...Array(count).keys()];
  const power = (value) => told(2 ** value, 6);

  // --- RoPE: a chain of phasors and the score ---------------------------------------------------------------

  /** Where the terms of a score end, one added to the other, fastest first. */
  const chainOf = (w, distance) => {
    const dots = [[0, 0]];
    for (const one of w) {
      const [x, y] = dots[dots.length - 1];
      dots.push([x + Math.cos(one * distance), y + Math.sin(one * distance)]);
    }
    return dots;
  };

  /** Arrows head to tail, one a pair; the end of the chain lies above the score on the axis. The drawing is as
   * high as the chain of any distance below `most` needs, so that it stays in its place. */
  const drawChain = (stage, w, distance, most) => {
    const n = w.length,
      width = stage.clientWidth,
      unit = (width - 40) / (2 * n + 2),
      middle = width / 2;
    const dots = chainOf(w, distance);
    const heights = range(most + 1).flatMap((one) => chainOf(w, one).map(([, y]) => y));
    const low = heights.reduce((a, b) => Math.min(a, b)),
      high = heights.reduce((a, b) => Math.max(a, b));
    const height = (high - low) * unit + 60,
      zero = height - 34 + low * unit;
    const place = ([x, y]) => [middle + x * unit, zero - y * unit];
    const alt = `A chain of ${n} arrows of length one, from the fastest pair to the slowest, at distance ${distance}`;
    const svg = drawing("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "moving-chart" });
    svg.append(drawing("title", {}, alt), drawing("desc", {}, alt));
    svg.append(drawing("line", { x1: 8, x2: width - 8, y1: zero, y2: zero, class: "axis" }));
    for (const at of [-n, 0, n]) {
      const [x] = place([at, 0]);
      svg.append(drawing("text", { x, y: zero + 20, "text-anchor": "middle", class: "faint" }, told(at)));
      svg.append(drawing("line", { x1: x, x2: x, y1: zero - 4, y2: zero + 4, class: "axis" }));
    }
    range(n).forEach((m) => {
      const [[x1, y1], [x2, y2]] = [place(dots[m]), place(dots[m + 1])];
      svg.append(drawing("line", { x1, y1, x2, y2, class: `arrow ${m < n / 2 ? "pos" : "sem"}` }));
      svg.append(drawing("circle", { cx: x2, cy: y2, r: 2, class: `dot ${m < n / 2 ? "pos" : "sem"}` }));
    });
    const [x, y] = place(dots[n]);
    svg.append(drawing("line", { x1: x, x2: x, y1: y, y2: zero, class: "mark" }));
    svg.append(drawing("circle", { cx: x, cy: zero, r: 5, class: "dot mixed" }));
    stage.append(svg);
    stage.append(
      legend([
        { look: "pos", words: "fast half of the pairs" },
        { look: "sem", words: "slow half" },
        { look: "mixed", words: "score: where the chain ends, left to right" },
      ]),
    );
  };

  figure("phasors", (box, { d, base, most }) => {
    panel(box, {
      controls: [
        {
          name: "distance",
          label: "Distance i \u2212 j",
          min: 0,
          max: most,
          value: 3,
          text: (value) => `${value} tokens`,
        },
        {
          name: "d",
          label: "Columns of the head",
          options: [8, 16, 32, 64].map((one) => [one, String(one)]),
          value: d,
        },
        {
          name: "base",
          label: "Base",
          min: 1,
          max: 6,
          step: 0.25,
          value: Math.log10(base),
          text: (value) => told(10 ** value, 3),
        },
      ],
      draw: (state, stage) => {
        stage.replaceChildren();
        const w = F.frequencies(Number(state.d), 10 ** state.base),
          n = w.length,
          x = range(most + 1);
        const now = F.score(w, state.distance),
          y = x.map((distance) => F.score(w, distance));
        drawChain(stage, w, state.distance, most);
        chart(stage, {
          x: { range: [0, most], label: "distance (tokens)" },
          y: { range: [-n, n], label: "score of equal vectors" },
          marks: [{ x: state.distance }, { y: 0 }],
          series: [
            { x, y, look: "ink" },
            { x: [state.distance], y: [now], look: "mixed", points: 5 },
          ],
          alt: `The score against the distance up to ${most}; at ${state.distance} it is ${told(now)}`,
        });
        const full = F.turns(w, Math.max(1, state.distance)).filter((one) => one >= 1).length;
        const turned = state.distance
          ? `${full} of ${n} pairs have made a full turn or more`
          : "no pair has turned";
        return `At distance ${state.distance} the score is ${told(now)} of at most ${n}; ${turned}.`;
      },
    });
  });

  // --- context extensions -----------------------------------------------------------------------------------

  const POWERS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"; // as exponents
  const METHODS = [
    ["pi", "PI", "pos"],
    ["ntk", "NTK-aware", "third"],
    ["parts", "NTK-by-parts", "fourth"],
    ["yarn", "YaRN, released code", "mixed"],
  ];

  figure("extensions", (box, { d, base, length, factor, alpha, beta }) => {
    panel(box, {
      controls: [
        { name: "factor", label: "Factor s", min: 1, max: 32, value: factor },
        { name: "length", label: "Trained length L", min: 7, max: 17, value: Math.log2(length), text: power },
        {
          name: "base",
          label: "Base",
          min: 2,
          max: 6.5,
          step: 0.25,
          value: Math.log10(base),
          text: (value) => told(10 ** value, 3),
        },
        {
          name: "alpha",
          label: "\u03b1: divided if at most so many turns",
          min: 0.25,
          max: 8,
          step: 0.25,
          value: alpha,
        },
        { name: "beta", label: "\u03b2: kept if at least so many turns", min: 9, max: 64, value: beta },
      ],
      draw: (state, stage) => {
        stage.replaceChildren();
        const { factor: s, alpha: slow, beta: fast } = state,
          L = 2 ** state.length,
          b = 10 ** state.base;
        const w = F.frequencies(d, b),
          made = F.turns(w, L),
          m = range(d / 2);
        const changed = METHODS.map(([key]) =>
          F.EXTENSIONS[key]({ w, d, base: b, s, L, alpha: slow, beta: fast }),
        );
        const few = made.filter((one) => one < 1).length,
          kept = made.filter((one) => one >= fast).length;
        const divided = made.filter((one) => one <= slow).length,
          last = d / 2;
        chart(stage, {
          x: { range: [-0.5, last - 0.5], label: "pair, fastest first" },
          y: {
            range: [0.9, Math.max(2, s * 1.08)],
            label: "divided by",
            log: s >= 8,
            at: s >= 8 ? [1, 2, 4, 8, 16, 32].filter((one) => one <= s) : undefined,
          },
          bands: [
            { from: -0.5, to: kept - 0.5, look: "third" },
            { from: last - divided - 0.5, to: last - 0.5, look: "mixed" },
          ],
          series: METHODS.map(([, words, look], at) => ({
            x: m,
            y: w.map((one, k) => one / changed[at][k]),
            look,
            words,
          })),
          alt: `By how much four methods divide the frequency of ${last} pairs at factor ${s}`,
        });
        stage.append(
          legend([
            { look: "third soft", words: `${kept} pairs with \u03b2 turns or more` },
            { look: "mixed soft", words: `${divided} pairs with \u03b1 turns or fewer` },
          ]),
        );
        chart(stage, {
          x: { range: [-0.5, last - 0.5], label: "pair, fastest first" },
          y: {
            range: [1, 10 ** 8],
            label: "wavelength (tokens)",
            log: true,
            at: [1, 100, 10 ** 4, 10 ** 6, 10 ** 8],
            text: (value) => `10${POWERS[Math.round(Math.log10(value))]}`,
          },
          marks: [{ y: L, words: "L" }, ...(s > 1 ? [{ y: s * L, words: "s L" }] : [])],
          series: [
            { x: m, y: w.map((one) => (2 * Math.PI) / one), look: "ink", words: "RoPE" },
            { x: m, y: changed[3].map((one) => (2 * Math.PI) / one), look: "mixed", words: "YaRN" },
          ],
          alt: `Wavelength of ${last} pairs, plain and under YaRN, beside L = ${L} and ${s} L`,
        });
        const sharper = told((0.1 * Math.log(s) + 1) ** 2);
        const first = `In ${told(L, 6)} tokens ${few} of ${last} pairs make less than a turn.`;
        return `${first} YaRN multiplies every score by ${sharper}.`;
      },
    });
  });

  // --- ALiBi ------------------------------------------------------------------------------------------------

  figure("slopes", (box, { heads, length }) => {
    panel(box, {
      controls: [
        { name: "heads", label: "Heads", min: 1, max: 32, value: heads },
        {
          name: "distance",
          label: "Distance of the key",
          min: 0,
          max: 1024,
          value: length,
          text: (value) => `${value} tokens`,
        },
      ],
      draw: (state, stage) => {
        stage.replaceChildren();
        const m = F.slopes(state.heads),
          x = range(257).map((k) => 4 * k),
          t = state.distance;
        const near = 2 ** Math.floor(Math.log2(state.heads));
        const line = (h) => ({
          x,
          y: x.map((at) => Math.exp(-m[h] * at)),
          look: h < near ? "pos" : "sem",
          words: h === 0 ? "heads of the power of two" : h === near ? "the others" : "",
        });
        chart(stage, {
          x: { range: [0, 1024], label: "distance (tokens)" },
          y: { range: [0, 1], label: "weight beside an equal key here" },
          marks: [{ x: length, words: `L = ${length}` }, ...(t === length ? [] : [{ x: t }])],
          series: [
            ...range(state.heads).map(line),
            { x: m.map(() => t), y: m.map((one) => Math.exp(-one * t)), look: "mixed", points: 4 },
          ],
          alt: `The weight of an equal key against its distance, one curve for each of ${state.heads} heads`,
        });
        const see = m.filter((one) => Math.exp(-one * t) > 0.1).length,
          flat = Math.min(...m);
        const first = `At ${t} tokens ${see} of ${state.heads} heads leave an equal key more than a tenth of its weight.`;
        const half = `half the weight after ${told(Math.LN2 / flat)} tokens`;
        return `${first} The flattest slope is 1/${told(1 / flat, 4)}: ${half}.`;
      },
    });
  });

  // --- digits as an odometer --------------------------------------------------------------------------------

  const NUMERALS = "0123456789ABCDEF";

  const drawWheels = (stage, { now, next, base, places }) => {
    const n = now.length,
      width = Math.min(stage.clientWidth, 62 * n),
      step = width / n,
      height = 132;
    const letters = Math.min(26, 0.8 * step);
    const svg = drawing("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      class: "moving-chart",
      style: `max-width: ${width}px`,
    });
    const alt = `Digits ${now.map((one) => NUMERALS[one]).join("")} in base ${base}, as wheels`;
    svg.append(drawing("title", {}, alt), drawing("desc", {}, alt));
    now.forEach((digit, k) => {
      const x = k * step + 2,
        middle = (k + 0.5) * step,
        moves = digit !== next[k],
        look = moves ? "mixed" : "faint";
      svg.append(
        drawing("rect", {
          x,
          y: 2,
          width: step - 4,
          height: 104,
          rx: 5,
          class: moves ? "soft mixed" : "ring",
        }),
      );
      [1, 0, -1].forEach((turn, row) => {
        const shown = (digit + turn + base) % base,
          large = turn === 0;
        const style = `font-size: ${large ? letters : 0.6 * letters}px; ${large ? "font-weight: 600" : "opacity: 0.7"}`;
        svg.append(
          drawing(
            "text",
            { x: middle, y: [26, 64, 95][row], "text-anchor": "middle", class: large ? "ink" : look, style },
            NUMERALS[shown],
          ),
        );
      });
      svg.append(
        drawing(
          "text",
          { x: middle, y: 124, "text-anchor": "middle", class: "faint" },
          step > 34 ? told(places[k], 6) : "",
        ),
      );
    });
    stage.append(svg);
  };

  figure("odometer", (box, { most, start }) => {
    panel(box, {
      controls: [
        {
          name: "position",
          label: "Position",
          min: 0,
          max: most - 2,
          value: start,
          text: (value) => value.toLocaleString("en"),
        },
        { name: "base", label: "Base", options: [2, 3, 10, 16].map((one) => [one, String(one)]), value: 10 },
      ],
      draw: (state, stage) => {
        stage.replaceChildren();
        const base = Number(state.base),
          p = state.position;
        const count = Math.ceil(Math.log(most) / Math.log(base) - 1e-9);
        const at = (position) => F.digits(position, base, count);
        const moved = (position) => {
          const next = at(position + 1);
          return at(position).filter((digit, k) => digit !== next[k]).length;
        };
        drawWheels(stage, {
          now: at(p),
          next: at(p + 1),
          base,
          places: range(count).map((k) => base ** (count - 1 - k)),
        });
        const first = Math.max(0, Math.min(p - 40, most - 82)),
          x = range(81).map((k) => first + k);
        chart(stage, {
          height: 190,
          x: {
            range: [first - 0.5, first + 80.5],
            label: "position",
            text: (value) => value.toLocaleString("en"),
          },
          y: { range: [0, count], label: "digits that change to the next position" },
          marks: [{ x: p }],
          series: [
            { x, y: x.map(moved), look: "faint", points: 2.5 },
            { x: [p], y: [moved(p)], look: "mixed", points: 5 },
          ],
          alt: `How many digits change from each position to the next, around ${p}`,
        });
        const changes = moved(p),
          carried = changes - 1;
        const words = carried ? `a carry through ${carried} place${carried > 1 ? "s" : ""}` : "no carry";
        const [from, to] = [p, p + 1].map((one) => one.toLocaleString("en"));
        return `From ${from} to ${to} ${changes} of ${count} digits change: ${words}.`;
      },
    });
  });

  // --- a training: the same positions in one plane, step by step -------------------------------------------

  figure("training", (box, { steps, positions, places, start }) => {
    const reach = 1.05 * Math.max(...places.flat(2).map(Math.abs));
    const third = Math.ceil(positions.length / 3);
    panel(box, {
      controls: [
        {
          name: "step",
          label: "Steps of training",
          min: 0,
          max: steps.length - 1,
          value: start,
          text: (value) => told(steps[value], 6),
        },
      ],
      draw: (state, stage) => {
        stage.replaceChildren();
        const at = places[state.step];
        const of = (points, more) => ({ x: points.map((p) => p[0]), y: points.map((p) => p[1]), ...more });
        const parts = ["pos", "third", "sem"].map((look, k) => {
          const [from, to] = [k * third, Math.min((k + 1) * third, positions.length)];
          const words = `positions ${positions[from]} to ${positions[to - 1]}`;
          return of(at.slice(from, to), { look, words, points: 4.5 });
        });
        chart(stage, {
          height: Math.min(420, stage.clientWidth),
          x: { range: [-reach, reach], label: "first principal component" },
          y: { range: [-reach, reach], label: "second" },
          series: [of(at, { look: "faint" }), ...parts],
          alt: `${positions.length} positions in a plane after ${steps[state.step]} steps, joined in order`,
        });
        return `After ${told(steps[state.step], 6)} steps; the line joins the positions in their order.`;
      },
    });
  });
})();
