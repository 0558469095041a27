// Draws the figure with Vega's interpreter, which needs no eval. Whatever fails leaves the picture in its place.
import { expressionInterpreter } from "../vendor/vega/vega-interpreter.js";

const place = document.getElementById("figure");
const root = document.documentElement;
let view = null;

async function draw() {
  const theme = root.getAttribute("data-bs-theme") === "dark" ? "dark" : "light";
  const response = await fetch(`${place.dataset.vega}&theme=${theme}`);
  if (!response.ok) throw new Error(`figure: ${response.status}`);
  const spec = await response.json();
  // The names beside the bars take their room first; what is left is the width of the plot.
  spec.autosize = { type: "fit-x", contains: "padding" };
  const runtime = vega.parse(spec, null, { ast: true });
  const fresh = new vega.View(runtime, { expr: expressionInterpreter, renderer: "svg", hover: false });
  const holder = document.createElement("div");
  fresh.initialize(holder).width(place.clientWidth);
  await fresh.runAsync();
  const svg = holder.querySelector("svg");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", place.dataset.alt);
  view?.finalize();
  view = fresh;
  place.replaceChildren(holder);
}

function picture() {
  const image = new Image();
  image.src = place.dataset.svg;
  image.alt = place.dataset.alt;
  image.className = "img-fluid";
  place.replaceChildren(image);
}

const redraw = () => draw().catch((error) => {
  console.error(error);
  picture();
});

redraw();
new MutationObserver(redraw).observe(root, { attributes: true, attributeFilter: ["data-bs-theme"] });
let last = place.clientWidth;
new ResizeObserver(() => {
  if (view && place.clientWidth !== last) {
    last = place.clientWidth;
    view.width(last).runAsync();
  }
}).observe(place);
