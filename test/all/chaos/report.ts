import { growth, stallsIn } from './check';
import type { Bounds, Count } from './check';
import type { Entry, FaultEntry, RequestEntry } from './ledger';

/** The counts as a Markdown table, the faults that happened, the worst second, and the memory. */
export function report(counts: readonly Count[], entries: readonly Entry[], bounds: Bounds): string {
  const of = <Kind extends Entry['kind']>(kind: Kind): Extract<Entry, { kind: Kind }>[] =>
    entries.filter((entry): entry is Extract<Entry, { kind: Kind }> => entry.kind === kind);
  const [faults, requests, changes] = [of('fault'), of('request'), of('change')];
  const acknowledged = changes.filter(({ ack }) => ack).length;
  const grown = new Map<string, number>();
  for (const name of new Set(of('memory').map(({ process }) => process))) {
    grown.set(name, growth(of('memory').filter(({ process }) => process === name)) / 1e6);
  }
  const [most = 'none', megabytes = 0] = [...grown].sort(([, one], [, other]) => other - one)[0] ?? [];
  return [
    '| rule | checked | broken |',
    '| --- | --- | --- |',
    ...counts.map(({ rule, checked, violations }) => `| ${rule} | ${checked} | ${violations.length} |`),
    '',
    `${requests.length} requests: ${tally(requests.map(({ status }) => String(status || 'no response')))}`,
    `${changes.length} changes, ${acknowledged} acknowledged`,
    `${faults.length} faults: ${tally(faults.map(({ name }) => name))}`,
    stallLine(entries, bounds),
    `memory: ${most} grew most, by ${megabytes.toFixed(1)} MB`,
    worstSecond(requests, faults),
    ...counts.flatMap(({ rule, violations }) =>
      violations.slice(0, 5).map((violation) => `BROKEN ${rule}: ${violation}`),
    ),
  ].join('\n');
}

/** What the machine itself did: stalls are faults, but none that the run has made. */
function stallLine(entries: readonly Entry[], bounds: Bounds): string {
  const { stalls, explained } = stallsIn(entries, bounds);
  const { longerThanMs, withinMs } = bounds.stall;
  const processes = stalls.length === 0 ? '' : ` (${tally(stalls.map(({ name }) => name))})`;
  return (
    `${stalls.length} stalls: a process got no time of the machine for more than ${longerThanMs} ms of ${withinMs} ms${processes}; ` +
    `${explained} responses with 503 came then or within ${bounds.recoveryMs} ms, and in no other fault`
  );
}

function tally(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${count} ${name}`).join(', ');
}

/** The second with the most requests that got neither 200 nor 401, with the faults of the 10 s before its end. */
function worstSecond(requests: readonly RequestEntry[], faults: readonly FaultEntry[]): string {
  const failures = new Map<number, RequestEntry[]>();
  for (const request of requests.filter(({ status }) => status !== 200 && status !== 401)) {
    const second = Math.floor(request.sentMs / 1_000);
    failures.set(second, [...(failures.get(second) ?? []), request]);
  }
  const [worst] = [...failures].sort(([, one], [, other]) => other.length - one.length);
  if (!worst) return 'worst second: every response was a 200 or a 401';
  const [fromMs, toMs] = [worst[0] * 1_000, worst[0] * 1_000 + 1_000];
  const active = faults.filter((fault) => fault.fromMs < toMs && fault.toMs > fromMs - 9_000);
  const seen = active.map(
    ({ name, gate, ...fault }) =>
      `${name}${gate ? ` ${gate}` : ''} (${Math.round(fault.fromMs - fromMs)} to ${Math.round(fault.toMs - fromMs)} ms)`,
  );
  const statuses = tally(worst[1].map(({ status }) => String(status || 'no response')));
  return `worst second: ${new Date(fromMs).toISOString()}, ${statuses}; faults: ${seen.join(', ') || 'none'}`;
}
