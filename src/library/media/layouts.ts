import { between, type Colour } from '../../raster/paint.ts';
import { ellipse, roundedRect } from '../../raster/path.ts';
import {
  black,
  drawBrand,
  drawButton,
  drawDiscount,
  drawParagraph,
  drawPlay,
  drawProduct,
  faded,
  inkOn,
  type Scene,
  white,
} from './scene.ts';

/** How a picture of an ad is laid out, 600 by 600. */
export type Layout = (scene: Scene) => void;
export const SIDE = 600;
const whole = { x: 0, y: 0, width: SIDE, height: SIDE };

const number = ({ chance }: Scene, at: number, low: number, high: number) => low + (chance[at] ?? 0.5) * (high - low);

function backdrop({ canvas }: Scene, above: Colour, below: Colour): void {
  canvas.fillRect(whole, { shape: 'linear', from: [0, 0], to: [160, SIDE], colours: [above, below] });
}

/** The product over a panel with the text. */
const panel: Layout = (scene) => {
  const { canvas, palette, headline, action } = scene;
  backdrop(scene, palette.paper, palette.tint);
  canvas.fillPath(ellipse(number(scene, 3, 240, 360), 236, [178, 178]), faded(palette.body, 0.22));
  drawProduct(scene, { x: 300, y: 376, scale: 0.68 });
  drawBrand(scene, { x: 32, y: 28, colour: palette.dark, on: white });
  drawDiscount(scene, { x: 516, y: 96 });
  canvas.fillRect({ x: 0, y: 412, width: SIDE, height: 188 }, white);
  drawParagraph(canvas, headline, {
    x: 32,
    y: 432,
    width: 536,
    height: 84,
    colour: palette.dark,
    sizes: [36, 32, 28, 25],
  });
  drawButton(canvas, action, { x: 32, y: 526, colour: white, on: palette.dark });
};

/** Large letters over the product on a dark ground. */
const poster: Layout = (scene) => {
  const { canvas, palette, headline, action } = scene;
  backdrop(scene, between(palette.dark, palette.body, 0.3), palette.dark);
  canvas.fillPath(ellipse(number(scene, 3, 400, 460), 440, [236, 236]), faded(palette.body, 0.75));
  canvas.fillPath(ellipse(number(scene, 3, 400, 460), 440, [176, 176]), faded(palette.tint, 0.35));
  drawProduct(scene, { x: 410, y: 560, scale: 0.66 });
  drawBrand(scene, { x: 36, y: 32, colour: white, on: palette.dark });
  drawParagraph(canvas, headline, {
    x: 36,
    y: 96,
    width: 500,
    height: 180,
    colour: white,
    sizes: [54, 46, 40, 34, 30],
  });
  drawButton(canvas, action, { x: 36, y: 512, colour: palette.dark, on: white });
};

/** Text beside the product. */
const split: Layout = (scene) => {
  const { canvas, palette, headline, action } = scene;
  backdrop(scene, palette.tint, palette.paper);
  const edge = 276;
  canvas.fillRect({ x: 0, y: 0, width: edge, height: SIDE }, palette.dark);
  canvas.fillPath(ellipse(438, 300, [134, 134]), faded(palette.body, 0.35));
  drawProduct(scene, { x: 438, y: 430, scale: 0.6 });
  drawDiscount(scene, { x: 528, y: 88 });
  drawParagraph(canvas, scene.brand, { x: 32, y: 40, width: 212, height: 60, colour: palette.tint, sizes: [22, 19] });
  drawParagraph(canvas, headline, {
    x: 32,
    y: 140,
    width: 220,
    height: 300,
    colour: white,
    sizes: [40, 36, 32, 28, 25],
  });
  drawButton(canvas, action, { x: 32, y: 508, colour: inkOn(palette.accent, palette), on: palette.accent });
};

/** The product in the middle of rings, with the text below in the middle. */
const rings: Layout = (scene) => {
  const { canvas, palette, headline, action } = scene;
  backdrop(scene, between(palette.body, palette.dark, 0.2), between(palette.body, palette.dark, 0.75));
  for (const [at, radius] of [256, 204, 152].entries())
    canvas.fillPath(ellipse(300, 226, [radius, radius]), faded(palette.paper, 0.14 + at * 0.14));
  drawProduct(scene, { x: 300, y: 376, scale: 0.66 });
  drawBrand(scene, { x: 32, y: 28, colour: white, on: palette.dark });
  drawDiscount(scene, { x: 510, y: 120 });
  drawParagraph(canvas, headline, {
    x: 50,
    y: 414,
    width: 500,
    height: 88,
    colour: white,
    sizes: [38, 34, 30, 26],
    align: 'centre',
  });
  drawButton(canvas, action, { x: 300, y: 524, colour: palette.dark, on: white, align: 'centre' });
};

/** Without a headline: the product, large. */
export const bare: Layout = (scene) => {
  const { canvas, palette, action } = scene;
  const [above, below] = (scene.chance[4] ?? 0) < 0.5 ? [palette.paper, palette.tint] : [palette.tint, palette.body];
  backdrop(scene, above, below);
  canvas.fillPath(ellipse(300, 290, [224, 224]), faded(white, 0.45));
  drawProduct(scene, { x: 300, y: 470, scale: 0.86 });
  drawBrand(scene, { x: 32, y: 28, colour: palette.dark, on: white });
  drawDiscount(scene, { x: 512, y: 100 });
  drawButton(canvas, action, { x: 300, y: 520, colour: white, on: palette.dark, align: 'centre' });
};

/** The still of a video: the scene fills the frame, and a caption lies over it. */
export const still: Layout = (scene) => {
  const { canvas, palette, headline } = scene;
  backdrop(scene, between(palette.dark, black, 0.25), palette.body);
  const light = number(scene, 3, 180, 420);
  canvas.fillPath(ellipse(light, 210, [270, 270]), {
    shape: 'radial',
    from: [light, 210],
    to: [light, 480],
    colours: [faded(palette.tint, 0.8), faded(palette.tint, 0)],
  });
  canvas.fillPath(ellipse(300, 520, [420, 96]), faded(palette.dark, 0.45));
  drawProduct(scene, { x: 300, y: 492, scale: 0.8 });
  canvas.fillRect(
    { x: 0, y: 380, width: SIDE, height: 220 },
    { shape: 'linear', from: [0, 380], to: [0, 560], colours: [faded(black, 0), faded(black, 0.8)] },
  );
  drawBrand(scene, { x: 32, y: 28, colour: white, on: palette.dark });
  drawPlay(canvas, { x: 300, y: 290 });
  drawParagraph(canvas, headline, {
    x: 32,
    y: 484,
    width: 536,
    height: 76,
    colour: white,
    sizes: [34, 30, 26],
  });
  canvas.fillPath(roundedRect({ x: 32, y: 574, width: 536, height: 6 }, 3), faded(white, 0.35));
  canvas.fillPath(roundedRect({ x: 32, y: 574, width: number(scene, 5, 60, 300), height: 6 }, 3), palette.accent);
};

/** A card of a carousel: the product, and its name below. The colours change from card to card. */
export const card =
  (nr: number): Layout =>
  (scene) => {
    const { canvas, palette, headline, action } = scene;
    const grounds = [
      [palette.paper, palette.tint],
      [palette.body, between(palette.body, palette.dark, 0.5)],
      [palette.tint, between(palette.tint, palette.accent, 0.5)],
      [between(palette.dark, palette.body, 0.4), palette.dark],
    ] as const;
    const [above, below] = grounds[nr % grounds.length] ?? grounds[0];
    backdrop(scene, above, below);
    canvas.fillPath(
      roundedRect({ x: 60, y: 60, width: 480, height: 360 }, 36),
      faded(white, nr % 2 === 1 ? 0.55 : 0.3),
    );
    drawProduct(scene, { x: 300, y: 396, scale: 0.74 });
    canvas.fillRect({ x: 0, y: 460, width: SIDE, height: 140 }, white);
    const title = headline || scene.brand;
    drawParagraph(canvas, title, {
      x: 32,
      y: 482,
      width: 320,
      height: 96,
      colour: palette.dark,
      sizes: [34, 30, 26, 23],
    });
    const button = title ? ({ x: 568, align: 'right' } as const) : ({ x: 300, align: 'centre' } as const);
    drawButton(canvas, action, { ...button, y: 504, colour: white, on: palette.dark });
  };

export const withHeadline: readonly Layout[] = [panel, poster, split, rings];
