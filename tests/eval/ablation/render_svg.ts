/** Vega-Lite to SVG, without a DOM. The libraries are fetched when first used. */

/** A Vega-Lite specification: plain JSON. */
export type Spec = Readonly<Record<string, unknown>>;

interface VegaLite {
  compile(spec: Spec): { readonly spec: Spec };
}

interface Vega {
  parse(spec: Spec): unknown;
  readonly View: new (runtime: unknown, options: { readonly renderer: "none" }) => {
    toSVG(): Promise<string>;
    finalize(): void;
  };
}

// Not literals, so that only plotting fetches them.
const VEGA = "npm:vega@6.4.0", VEGA_LITE = "npm:vega-lite@6.5.0";

export async function renderSvg(spec: Spec): Promise<string> {
  const [vega, lite]: [Vega, VegaLite] = await Promise.all([import(VEGA), import(VEGA_LITE)]);
  const view = new vega.View(vega.parse(lite.compile(spec).spec), { renderer: "none" });
  try {
    return `${await view.toSVG()}\n`;
  } finally {
    view.finalize();
  }
}
