import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';

/** A function of a source file, and how often it was called. */
interface Called {
  readonly url: string;
  readonly name: string;
  readonly count: number;
}

/** The functions below src/ that `work` calls, by V8's precise coverage, without those of the testing kit. */
export async function functionsCalled(work: () => unknown): Promise<Called[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await session.post('Profiler.takePreciseCoverage');
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  await session.post('Profiler.stopPreciseCoverage');
  session.disconnect();
  return (
    result
      // An index only lists what others export.
      .filter(({ url }) => /\/src\/(gate|cli|app)\/(?!.*(index|internal)\.ts)/.test(url))
      .flatMap(({ url, functions }) => functions.filter((one) => !isOfLoader(one)).map((one) => ({ ...one, url })))
      .map(({ url, functionName: name, ranges: [range] }) => ({ url, name, count: range?.count ?? 0 }))
      .filter(({ count }) => count > 0)
  );
}

/** What the source has not: the functions by which the loader of TypeScript names and exports, and V8's own for class fields. */
function isOfLoader({ functionName, ranges: [range] }: Profiler.FunctionCoverage): boolean {
  const length = (range?.endOffset ?? 0) - (range?.startOffset ?? 0);
  const isExport = length === '()=>'.length + functionName.length || functionName === 'get';
  return isExport || ['__name', '<instance_members_initializer>'].includes(functionName);
}
