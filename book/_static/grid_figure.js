// The figure of chapter 17: how similar each place of a grid is to one that the reader chooses. The page carries
// what an embedding makes of every place; products of these are all that is computed here.
(() => {
  "use strict";
  const { figure, panel, chart, drawing, told } = sepnb;
  const range = (count) => [...Array(count).keys()];

  /** The product of the vector of place `here` with that of every place; queries are the keys where none are given. */
  const products = ({ keys, queries = keys }, here) =>
    keys.map((key) => key.reduce((sum, value, k) => sum + value * queries[here][k], 0));

  /** The neighbours of a place, eight where it is no edge, and how many of them are among as many places that
   * are the most similar. */
  const neighbours = (values, side, here) => {
    const [row, column] = [Math.floor(here / side), here % side];
    const around = range(side * side).filter((place) => {
      const away = Math.max(Math.abs(Math.floor(place / side) - row), Math.abs((place % side) - column));
      return away === 1;
    });
    const others = range(side * side).filter((place) => place !== here);
    const nearest = others.sort((a, b) => values[b] - values[a]).slice(0, around.length);
    return [around.length, around.filter((place) => nearest.includes(place)).length];
  };

  /** The grid, a square a place, as dark as it is similar; the chosen place and the trained grid are outlined. */
  const drawGrid = (stage, { side, trained, values, here, alt }) => {
    const width = Math.min(stage.clientWidth, 460),
      left = 46,
      top = 8,
      unit = (width - left - 8) / side;
    const svg = drawing("svg", {
      viewBox: `0 0 ${width} ${top + side * unit + 42}`,
      role: "img",
      class: "moving-chart",
      style: `max-width: ${width}px`,
    });
    svg.append(drawing("title", {}, alt), drawing("desc", {}, alt));
    const low = Math.min(...values),
      reach = Math.max(...values) - low || 1;
    values.forEach((value, place) => {
      svg.append(
        drawing("rect", {
          x: left + (place % side) * unit,
          y: top + Math.floor(place / side) * unit,
          width: unit,
          height: unit,
          class: "cell",
          "fill-opacity": ((value - low) / reach).toFixed(3),
        }),
      );
    });
    const square = (row, column, count, look) =>
      svg.append(
        drawing("rect", {
          x: left + column * unit,
          y: top + row * unit,
          width: count * unit,
          height: count * unit,
          class: look,
        }),
      );
    square(0, 0, side, "ring");
    square(0, 0, trained, "trained");
    square(Math.floor(here / side), here % side, 1, "chosen");
    for (const at of range(side).filter((one) => one === 0 || (one + 1) % 5 === 0)) {
      const middle = (at + 0.5) * unit;
      const text = { class: "faint" };
      svg.append(
        drawing("text", { x: left + middle, y: top + side * unit + 17, "text-anchor": "middle", ...text }, at + 1),
        drawing("text", { x: left - 7, y: top + middle + 4, "text-anchor": "end", ...text }, at + 1),
      );
    }
    svg.append(
      drawing("text", { x: left + (side * unit) / 2, y: top + side * unit + 36, "text-anchor": "middle", class: "ink" }, "column"),
      drawing("text", { x: 2, y: top + (side * unit) / 2, class: "ink" }, "row"),
    );
    stage.append(svg);
  };

  figure("grid", (box, { side, trained, maps }) => {
    box.sepnb = { products: (which, here) => products(maps[which], here) };
    const coordinate = (name, label) => ({ name, label, min: 1, max: side, value: 5 });
    panel(box, {
      controls: [
        { name: "which", label: "Embedding", options: maps.map((one, k) => [String(k), one.says]), value: "0" },
        coordinate("row", "Row"),
        coordinate("column", "Column"),
      ],
      draw: ({ which, row, column }, stage) => {
        stage.replaceChildren();
        const here = (row - 1) * side + column - 1,
          values = products(maps[which], here),
          { says } = maps[which];
        const [around, found] = neighbours(values, side, here);
        const place = `row ${row}, column ${column}`;
        drawGrid(stage, {
          side,
          trained,
          values,
          here,
          alt: `How similar each place of a grid of ${side} by ${side} is to ${place}: ${says}`,
        });
        const x = range(side).map((k) => k + 1),
          low = Math.min(...values),
          high = Math.max(...values);
        chart(stage, {
          height: 200,
          x: { range: [1, side], label: "row or column" },
          y: { range: [low, high + 0.05 * (high - low || 1)], label: "product" },
          marks: [{ x: trained + 0.5, words: "trained up to here" }],
          series: [
            { x, y: x.map((k) => values[(row - 1) * side + k - 1]), look: "pos", words: `along row ${row}` },
            { x, y: x.map((k) => values[(k - 1) * side + column - 1]), look: "sem", words: `along column ${column}` },
          ],
          alt: `The product of ${place} with the places of its row and of its column: ${says}`,
        });
        const nearest = `Of its ${around} neighbours ${found} are among the ${around} most similar places`;
        return `${says}: ${place} has the product ${told(values[here])} with itself. ${nearest}.`;
      },
    });
  });
})();
