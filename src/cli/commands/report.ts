import { attempt, escapeUnsafe, isObject } from 'tillgate/internal';
import { readGiven, type CommandContext, type CommandOptions } from '../command';
import { print } from '../output';

/** A line that a trial has logged. */
interface Line {
  readonly reason: string;
  /** What the gate would have sent. */
  readonly status: number;
  /** What the middleware of today has sent. */
  readonly responded: number;
  readonly count: number;
  readonly clientId?: string;
  /** With the method: `GET /orders/:id`. */
  readonly path: string;
  readonly advice?: string;
}

/** As many names in a line of text; JSON has all. */
const NAMED = 5;

/** `tillgate report`: sums up where gates and guards on trial decide otherwise than what responds. */
export async function report(context: CommandContext, _options: CommandOptions, file = '-'): Promise<void> {
  const objects = readObjects(await readGiven(context.io, file));
  const lines = objects.flatMap(readLine);
  const reasons = [...new Set(lines.map(({ reason }) => reason))];
  const causes = reasons
    .map((reason) => sumUp(lines.filter((line) => line.reason === reason)))
    .sort((one, other) => other.requests - one.requests);
  const requests = causes.reduce((sum, cause) => sum + cause.requests, 0);
  const title =
    requests === 0
      ? 'No line of reportOnly() is in this log: the two decide alike, or the log is of something else.'
      : `${requests} requests would be decided otherwise, for ${causes.length} reasons.`;
  // The last line of a client is the newest one.
  const unused = [...new Map(objects.flatMap(readUnused))].filter(([, scopes]) => scopes.length > 0);
  const never = unused.map(([clientId, scopes]) => escapeUnsafe(`${clientId}: ${scopes.join(' ')}`));
  const blocks = never.length === 0 ? [] : [['scopes that no request has needed', ...never].join('\n  ')];
  print(
    context,
    { requests, causes, unusedScopes: Object.fromEntries(unused) },
    [title, ...causes.map(describeCause), ...blocks].join('\n\n'),
  );
}

/** The objects in the lines of a log; what a logger writes in front of the JSON, and lines without any, are left out. */
function readObjects(text: string): readonly Fields[] {
  return text.split('\n').flatMap((line) => {
    const start = line.indexOf('{');
    const parsed = start < 0 ? undefined : attempt(() => JSON.parse(line.slice(start)) as unknown);
    return isObject(parsed) ? [parsed] : [];
  });
}

/** Anything can be in a log: only a line with all that a trial logs counts. */
function readLine(fields: Fields): readonly Line[] {
  const { reason, status, responded, count = 1, clientId, path, advice } = fields as Partial<Line>;
  const isLine = [reason, path].every(isText) && [status, responded, count].every(Number.isSafeInteger) && count >= 0;
  if (!isLine) return [];
  const others = { ...(isText(clientId) && { clientId }), ...(isText(advice) && { advice }) };
  return [{ reason, status, responded, count, path, ...others } as Line];
}

/** Which scopes a client holds and has not used. */
function readUnused({ clientId, unused }: Fields): readonly (readonly [clientId: string, scopes: readonly string[]])[] {
  return isText(clientId) && Array.isArray(unused) && unused.every(isText) ? [[clientId, unused]] : [];
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** An object of a log. */
type Fields = Readonly<Record<string, unknown>>;

/** What one reason has caused. */
type Cause = ReturnType<typeof sumUp>;

function sumUp(lines: readonly Line[]) {
  const unique = <Value>(values: readonly Value[]): readonly Value[] => [...new Set(values)];
  const [{ reason, status, advice }] = lines as readonly [Line, ...Line[]];
  return {
    reason,
    requests: lines.reduce((sum, { count }) => sum + count, 0),
    gate: status,
    responded: unique(lines.map(({ responded }) => responded)),
    clients: unique(lines.flatMap(({ clientId }) => clientId ?? [])),
    routes: unique(lines.map(({ path }) => path)),
    advice,
  };
}

function describeCause({ reason, requests, gate, responded, clients, routes, advice }: Cause): string {
  const some = (names: readonly string[]): string => {
    const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
    return names.slice(0, NAMED).map(escapeUnsafe).join(', ') + more;
  };
  return [
    `${reason}: ${requests} requests, the gate would send ${gate} instead of ${responded.join(', ')}`,
    ...(clients.length > 0 ? [`clients: ${some(clients)}`] : []),
    `routes: ${some(routes)}`,
    ...(advice === undefined ? [] : [advice]),
  ].join('\n  ');
}
