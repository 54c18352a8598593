/** One measured size. */
export interface Point {
  readonly size: number;
  readonly cost: number;
}

const COLOURS = ['#1f6f5c', '#b5472f', '#c9a227', '#3b6ea8', '#7a4f9a'];
const [LEFT, TOP, WIDTH, HEIGHT] = [60, 50, 560, 260] as const;

/** Draws one line for each thing that grows, sizes on a logarithmic axis, as an SVG. */
export function lineChart(title: string, lines: ReadonlyMap<string, readonly Point[]>): string {
  const points = [...lines.values()].flat();
  const [widest, dearest] = [Math.max(...points.map(({ size }) => size)), Math.max(...points.map(({ cost }) => cost))];
  const top = Math.ceil(dearest / 10) * 10;
  const x = (size: number): number => LEFT + (Math.log10(Math.max(1, size)) / Math.log10(widest)) * WIDTH;
  const y = (cost: number): number => TOP + HEIGHT - (Math.max(0, cost) / top) * HEIGHT;
  const drawn = [...lines].map(([name, path], index) => {
    const spots = path.map(({ size, cost }) => `${x(size).toFixed(1)},${y(cost).toFixed(1)}`);
    const legend = text(LEFT + WIDTH + 40, TOP + 20 + index * 20, name);
    const colour = COLOURS[index] ?? '#222222';
    const key = `<rect x="${LEFT + WIDTH + 20}" y="${TOP + 10 + index * 20}" width="12" height="12" fill="${colour}"/>`;
    return `<polyline points="${spots.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>${key}${legend}`;
  });
  const costs = [0, top / 2, top].map((cost) => text(LEFT - 10, y(cost) + 4, `${cost} us`, 'end'));
  const sizes = [1, 1_000, 1_000_000].map((size) =>
    text(x(size), TOP + HEIGHT + 20, size.toLocaleString('en'), 'middle'),
  );
  const [width, height] = [LEFT + WIDTH + 130, TOP + HEIGHT + 40];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${title}</title><rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(20, 24, title),
    `<path d="M${LEFT} ${TOP}V${TOP + HEIGHT}H${LEFT + WIDTH}" fill="none" stroke="#888888"/>`,
    ...costs,
    ...sizes,
    ...drawn,
    '</svg>\n',
  ].join('\n');
}

function text(x: number, y: number, content: string, anchor = 'start'): string {
  return `<text x="${x.toFixed(0)}" y="${y.toFixed(0)}" text-anchor="${anchor}" font-family="sans-serif" font-size="12" fill="#222222">${content}</text>`;
}
