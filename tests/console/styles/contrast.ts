/** A colour as in `oklch(0.5 0.1 258)`. */
export interface Oklch {
  lightness: number;
  chroma: number;
  /** Degrees. */
  hue: number;
}

export function parseOklch(text: string): Oklch {
  const [, lightness, chroma, hue] = /^oklch\(([\d.]+) ([\d.]+) ([\d.]+)\)$/.exec(text.trim()) ?? [];
  if (hue === undefined) throw new Error(`${text} is not an opaque colour in oklch()`);
  return { lightness: Number(lightness), chroma: Number(chroma), hue: Number(hue) };
}

/** The contrast ratio of WCAG 2.2, 1 to 21. */
export function contrast(one: Oklch, other: Oklch): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** The relative luminance in sRGB, 0 to 1. The matrices are those of CSS Color 4, section 10. */
function luminance({ lightness, chroma, hue }: Oklch): number {
  const radians = (hue * Math.PI) / 180;
  const a = chroma * Math.cos(radians);
  const b = chroma * Math.sin(radians);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const inGamut = (value: number): number => Math.min(1, Math.max(0, value));
  const red = inGamut(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
  const green = inGamut(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
  const blue = inGamut(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
