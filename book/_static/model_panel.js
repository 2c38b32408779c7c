// The model in the page of chapter 21: a text and its length, a start index and a rule of evaluation go in; the
// loss of every byte, the guesses for the next one and the attention of a head come out. What is computed stands in model.js,
// how it is drawn in moving.js.
(() => {
  "use strict";
  const { figure, panel, chart, heatMap, element, told, model: M } = sepnb;

  const RULES = [
    ["plain", "as it is"],
    ["masked", "window mask, indices kept"],
    ["reread", "sliding window, from index 0"],
  ];
  const SHOWN = 96; // rows and columns of a map at most
  const SMOOTH = 32; // bytes in a running mean
  const GUESSES = 5;

  /** A byte as a reader sees it. */
  const letter = (byte) => {
    if (byte === 32) return "\u2423";
    if (byte === 10) return "\u23ce";
    if (byte === 9) return "\u21e5";
    return byte > 32 && byte < 127 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
  };
  const words = (tokens) => tokens.map(letter).join("");
  const mean = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;

  /** The bytes of a text in UTF-8, as many as the panel reads. */
  const bytesOf = (text, most) => [...new TextEncoder().encode(text)].slice(0, most);

  const slowed = (factor) => (factor === 1 ? "as trained" : `${factor} times slower`);

  /** What a model says to tokens under a rule, and what its heads did, by layer and head. */
  const read = (model, tokens, start, rule) => {
    const heads = {};
    const watch = (layer, head, parts) => (heads[`${layer}.${head}`] ||= []).push(parts);
    const logits = M.RULES[rule](model, tokens, start, { watch });
    return { logits, heads, bits: M.bits(logits, tokens) };
  };

  /** Bits per byte of the first trained length of a text, read as in training: what a text should keep to. */
  const levelOf = (model, tokens) => {
    const short = tokens.slice(0, model.length + 1);
    return mean(M.bits(M.RULES.plain(M.slowedDown(model, 1), short, 0), short));
  };

  /** A term of the score, less its mean over the keys that a query sees, which no softmax notices. */
  const centred = ({ rows, data }) => {
    const values = data.slice();
    for (let i = 0; i < rows; i++) {
      const seen = [];
      for (let j = 0; j < rows; j++) if (Number.isFinite(data[i * rows + j])) seen.push(data[i * rows + j]);
      const middle = mean(seen);
      for (let j = 0; j < rows; j++) values[i * rows + j] -= middle;
    }
    return values;
  };

  /** Of a square of values the part with these rows and columns. */
  const cut = (values, side, first, stop) => {
    const found = new Float64Array((stop - first) ** 2);
    for (let i = first; i < stop; i++) {
      found.set(values.subarray(i * side + first, i * side + stop), (i - first) * (stop - first));
    }
    return found;
  };

  const rootMeanSquare = (values) => {
    const finite = [...values].filter(Number.isFinite);
    return Math.sqrt(mean(finite.map((value) => value * value)));
  };

  // --- the three pictures -----------------------------------------------------------------------------------

  const drawLosses = (stage, { bits, start, rule, length, inside, trained, factor, chosen }) => {
    const begin = rule === "reread" ? 0 : start,
      x = bits.map((_, i) => begin + i);
    const running = bits.map((_, i) => mean(bits.slice(Math.max(0, i - SMOOTH + 1), i + 1)));
    const end = begin + bits.length,
      border = rule === "reread" ? length : trained * factor;
    const bands = end > border && rule !== "reread" ? [{ from: border, to: end, look: "mixed" }] : [];
    chart(stage, {
      height: 230,
      x: { range: [begin, end], label: rule === "reread" ? "byte of the text" : "index" },
      y: { range: [0, 8], label: "bits for the next byte" },
      bands,
      marks: [
        { x: length, words: rule === "reread" ? "L: from here on the window moves" : "L" },
        { y: inside, words: `its first ${length} bytes, as trained`, below: true },
        { x: begin + chosen },
      ],
      series: [
        { x, y: bits, look: "faint", points: 1.7, words: "each byte" },
        { x, y: running, look: "pos", words: `mean of the last ${SMOOTH}` },
      ],
      alt: `Loss of every byte from index ${begin} to ${end}, and its running mean`,
    });
    if (bands.length) {
      const beyond = factor === 1 ? "indices never trained" : "past the trained indices, even slowed down";
      stage.lastElementChild.append(element("span", { class: "mixed soft" }, beyond));
    }
  };

  const drawGuesses = (stage, { logits, tokens, chosen }) => {
    const all = M.probabilities(logits, chosen);
    const best = [...all.keys()].sort((a, b) => all[b] - all[a]).slice(0, GUESSES);
    const rows = best.map((byte) => {
      const bar = element("span", { class: "moving-bar", style: `width:${(100 * all[byte]).toFixed(1)}%` });
      const came = byte === tokens[chosen + 1] ? "\u2190 came" : "";
      const head = element("th", { scope: "row" }, element("code", {}, letter(byte)));
      const share = element("td", {}, `${(100 * all[byte]).toFixed(1)} %`);
      return element(
        "tr",
        {},
        head,
        share,
        element("td", { class: "moving-bars" }, bar),
        element("td", {}, came),
      );
    });
    const before = words(tokens.slice(Math.max(0, chosen - 23), chosen + 1));
    const caption = element(
      "caption",
      {},
      "Guesses after ",
      element("code", {}, `${chosen > 23 ? "\u2026" : ""}${before}`),
    );
    stage.append(element("table", { class: "moving-guesses" }, caption, element("tbody", {}, ...rows)));
    return best;
  };

  const drawHead = (stage, parts, chosen, wide) => {
    const side = parts.weights.rows,
      row = chosen - parts.first;
    const stop = Math.min(side, Math.max(row + 1, Math.min(side, wide))),
      first = Math.max(0, stop - wide);
    const maps = element("div", { class: "moving-maps" });
    const terms = Object.entries(parts.terms()).map(([name, term]) => {
      const values = centred(term);
      return { name, size: rootMeanSquare(values), cut: cut(values, side, first, stop) };
    });
    const finite = terms.flatMap((term) => [...term.cut].filter(Number.isFinite).map(Math.abs));
    const reach = finite.sort((a, b) => a - b)[Math.floor(0.99 * (finite.length - 1))];
    stage.append(maps);
    for (const { name, size, cut: values } of terms) {
      const alt = `Part ${name} of the scores, a row for each query and a column for each key`;
      heatMap(maps, {
        rows: stop - first,
        cols: stop - first,
        values,
        reach,
        title: `${name}: ${told(size, 2)}`,
        alt,
      });
    }
    const weights = cut(parts.weights.data, side, first, stop).map((share) =>
      share > 0 ? Math.sqrt(share) : NaN,
    );
    const alt = "Attention weights, a row for each query and a column for each key";
    heatMap(maps, {
      rows: stop - first,
      cols: stop - first,
      values: weights,
      reach: 0.7,
      title: "weights (root)",
      alt,
    });
    stage.append(
      element(
        "p",
        { class: "moving-note" },
        `Rows: queries at bytes ${parts.first + first} to ${parts.first + stop - 1} of the text, columns: keys. ` +
          "A part of the score is named query \u00b7 key, with its root mean square. ",
        element("span", { class: "above" }, "above"),
        " and ",
        element("span", { class: "below" }, "below"),
        " the mean of its row.",
      ),
    );
    return terms;
  };

  // --- together ---------------------------------------------------------------------------------------------

  const sentence = ({ bits, length, start, rule, factor, best, terms, head }) => {
    const [near, far] = [bits.slice(0, length), bits.slice(length)].map((some) =>
      some.length ? mean(some) : null,
    );
    const where = rule === "reread" || start === 0 ? "" : ` at indices from ${start} on`;
    const opening = factor === 1 ? "The" : `With positions ${slowed(factor)}, the`;
    const first = `${opening} first ${Math.min(length, bits.length)} bytes${where} cost ${near.toFixed(2)} bits each`;
    const rest = far === null ? "." : `, those after them ${far.toFixed(2)}.`;
    const parts = terms.map(({ name, size }) => `${name} ${told(size, 2)}`).join(", ");
    return `${first}${rest} The likeliest next byte is ${letter(best[0])}. Scores of ${head}, by part: ${parts}.`;
  };

  figure("model", (box, { models, texts, length, bands }) => {
    const built = models.map((one) => M.unpack(one.packed)),
      most = 8 * length;
    const headsOf = (model) =>
      model.layers.flatMap((layer, number) =>
        layer.groups.flatMap((group) =>
          group.heads.map(({ head, writes }) => [
            `${number}.${head}`,
            `layer ${number + 1}, head ${head + 1}` +
              (group.reads.includes("sem") ? "" : " (reads positions only)"),
            writes,
          ]),
        ),
      );
    const heads = headsOf(built[0]),
      numbered = (list) => list.map(([, name], at) => [String(at), name]);
    let held = { key: null };
    let sample = "0",
      whole = most; // bytes of the text, of which the panel reads the first `bytes`
    const inLengths = (value) => `${value} (${told(value / length, 3)} L)`;
    box.sepnb = { models: built, held: () => held }; // for whoever looks in from outside
    panel(box, {
      controls: [
        { name: "sample", label: "Text", options: numbered(texts), value: "0" },
        {
          name: "text",
          label: `Change it, or type your own (at most ${most} bytes)`,
          rows: 4,
          most,
          value: texts[0][0],
        },
        { name: "bytes", label: "Length", min: 2, max: most, value: most, text: inLengths },
        { name: "start", label: "Start index", min: 0, max: most, value: 0, text: inLengths },
        { name: "factor", label: "Slow positions down", min: 1, max: 16, value: 1, text: slowed },
        {
          name: "model",
          label: "Model",
          options: models.map((one, at) => [String(at), one.says]),
          value: "0",
        },
        { name: "rule", label: "Rule", options: RULES, value: "plain" },
        { name: "chosen", label: "Byte looked at", min: 0, max: most, value: most },
        {
          name: "head",
          label: "Head",
          options: heads.map(([key, name]) => [key, name]),
          value: heads[heads.length > 1 ? 1 : 0][0],
        },
      ],
      draw: (state, stage, parts) => {
        if (state.sample !== sample) {
          sample = state.sample;
          state.text = parts.text.input.value = texts[Number(sample)][0];
          state.chosen = state.bytes = most;
        }
        const all = bytesOf(state.text, most);
        stage.replaceChildren();
        if (all.length < 2) return "Type at least two bytes.";
        const bytes = state.bytes >= whole ? all.length : Math.min(state.bytes, all.length);
        whole = all.length;
        parts.bytes.set({ max: whole, value: bytes });
        const tokens = all.slice(0, bytes);
        const { rule, start, factor } = state,
          own = built[Number(state.model)],
          model = M.slowedDown(own, factor, bands);
        const chosen = Math.min(state.chosen, tokens.length - 2);
        parts.chosen.set({ max: tokens.length - 2, value: chosen });
        const key = JSON.stringify([state.model, tokens, rule, factor, rule === "reread" ? 0 : start]);
        if (held.key !== key)
          held = { key, level: levelOf(own, tokens), ...read(model, tokens, start, rule) };
        const pieces = held.heads[state.head];
        const piece = pieces.find((one) => one.from <= chosen && chosen < one.to);
        const { trained } = models[Number(state.model)];
        drawLosses(stage, {
          bits: held.bits,
          start,
          rule,
          length,
          trained,
          factor,
          chosen,
          inside: held.level,
        });
        const best = drawGuesses(stage, { logits: held.logits, tokens, chosen });
        const terms = drawHead(stage, piece, chosen, SHOWN);
        const [, head] = heads.find(([one]) => one === state.head);
        return sentence({ bits: held.bits, length, start, rule, factor, best, terms, head });
      },
    });
  });
})();
