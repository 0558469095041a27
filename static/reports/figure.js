// Draws the figures with Vega's interpreter, which needs no eval. Whatever fails leaves the picture in its place.
// An address that serves several figures is asked once; data-key says which of them a place shows.
import { expressionInterpreter } from "../vendor/vega/vega-interpreter.js";

const root = document.documentElement;
const asked = new Map();

function fetched(address) {
  if (!asked.has(address)) {
    asked.set(address, fetch(address).then((response) => {
      if (!response.ok) throw new Error(`figure: ${response.status}`);
      return response.text();
    }));
  }
  return asked.get(address);
}

function keep(place) {
  let view = null;
  let last = place.clientWidth;

  async function draw() {
    const theme = root.getAttribute("data-bs-theme") === "dark" ? "dark" : "light";
    const found = JSON.parse(await fetched(`${place.dataset.vega}&theme=${theme}`));
    const spec = place.dataset.key ? found[place.dataset.key] : found;
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
  new ResizeObserver(() => {
    if (view && place.clientWidth !== last) {
      last = place.clientWidth;
      view.width(last).runAsync();
    }
  }).observe(place);
}

document.querySelectorAll("[data-vega]").forEach(keep);
