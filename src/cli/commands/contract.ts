import { AssertionError } from 'node:assert';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { CASE_CLASSES, describeMismatch } from '@tillgate/testing/internal';
import type { Exchange, Mismatch } from '@tillgate/testing/internal';
import { contractCases, startTestIssuer } from '@tillgate/testing';
import type { CaseClass, ContractReport, HttpTestIssuer } from '@tillgate/testing';
import { attempt, didYouMean, escapeUnsafe, isObject, parseUrl } from 'tillgate/internal';
import { CliError, EXIT, print, write } from '../command';
import type { CommandContext, CommandOptions } from '../command';

/** One case that has failed. */
interface Failure {
  readonly name: string;
  readonly class: CaseClass;
  readonly operation: string | undefined;
  readonly differences: readonly string[];
  readonly request?: string;
  readonly response?: string;
  /** A command line that sends the request again. */
  readonly curl?: string;
  /** Line of the document that has the operation. */
  readonly line?: number;
  /** Whether the baseline has it. */
  readonly isKnown: boolean;
}

/** What a run has found. */
interface Result {
  readonly url: string;
  readonly openapi: string;
  readonly cases: readonly { readonly name: string; readonly class: string | undefined }[];
  readonly failures: readonly Failure[];
  /** What is no failure. */
  readonly notices: Pick<ContractReport, 'documentation' | 'security'>;
}

const BODY_LENGTH = 200;
const KEY_TRIES = 30;
const KEY_PAUSE_MS = 500;

/** `tillgate contract`: the contract cases against a server that runs. */
export async function contract(context: CommandContext, options: CommandOptions): Promise<number> {
  const { io } = context;
  const { openapi = 'openapi.yaml', depth } = options;
  const url = parseUrl(options.url ?? '');
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new CliError('--url: expected the URL of the server, for example --url http://127.0.0.1:3000', EXIT.usage);
  }
  if (depth !== undefined && depth !== 'quick' && depth !== 'full') {
    throw new CliError(`--depth: got "${depth}", expected quick or full`, EXIT.usage);
  }
  const known = readBaseline(options.baseline);
  const classes = options.class?.split(',').map(readClass);
  const { issuerPort = '4000', audience } = options;
  const issuer = await start(Number(issuerPort), audience);
  try {
    const trust = `issuer ${issuer.issuer}, audience ${issuer.audience}`;
    write(
      io.stderr,
      `The server must trust ${trust}, and get its keys from ${issuer.jwksUri}; a gate of Tillgate also its changes: TILLGATE_GENERATIONS=${issuer.issuer}/generations`,
    );
    const cases = casesOf({ ...{ url: url.href, openapi, issuer, depth, classes }, ...ownersOf(options.owner) });
    const lines = attempt(() => readFileSync(openapi, 'utf8').split('\n')) ?? [];
    const failures: Failure[] = [];
    for (const [index, one] of cases.entries()) {
      showProgress(io.stderr, `${index + 1} of ${cases.length} cases, ${failures.length} red`);
      let failure = await runCase(one, lines, known, url);
      // A server that started before this issuer tries again to get its keys.
      for (let tries = 0; one.class === undefined && isOfKeys(failure) && tries < KEY_TRIES; tries++) {
        await wait(KEY_PAUSE_MS);
        failure = await runCase(one, lines, known, url);
      }
      if (failure && one.class === undefined) throw new CliError(explainDistrust(failure, issuer), EXIT.usage);
      if (failure) failures.push(failure);
    }
    const listed = cases.map(({ name, class: what }) => ({ name, class: what }));
    const { documentation, security } = cases.report();
    const result: Result = { url: url.href, openapi, cases: listed, failures, notices: { documentation, security } };
    showProgress(io.stderr, '');
    print(context, result, asText(result));
    return failures.some(({ isKnown }) => !isKnown) ? EXIT.failed : EXIT.ok;
  } finally {
    showProgress(io.stderr, '');
    await issuer.close();
  }
}

/** Rewrites the last line of a terminal. */
function showProgress(stderr: CommandContext['io']['stderr'], text: string): void {
  if (stderr.isTTY) stderr.write(`\r\x1b[K${text}`);
}

/** Whatever is wrong with the document, nothing was tested. */
function casesOf(options: Parameters<typeof contractCases>[0]): ReturnType<typeof contractCases> {
  try {
    return contractCases(options);
  } catch (error) {
    throw new CliError((error as Error).message, EXIT.usage);
  }
}

async function start(port: number, audience: string | undefined): Promise<HttpTestIssuer> {
  try {
    return await startTestIssuer({ port, audience });
  } catch (error) {
    throw new CliError(`--issuer-port ${port}: ${(error as Error).message}; choose another one`, EXIT.usage);
  }
}

function ownersOf(given: string | undefined): { readonly owners?: readonly [string, string] } {
  if (given === undefined) return {};
  const [first, second, ...others] = given.split(',');
  if (!first || !second || others.length > 0) {
    throw new CliError(`--owner: got "${given}", expected two client ids, for example till-7,kiosk-2`, EXIT.usage);
  }
  return { owners: [first, second] };
}

function readClass(given: string): CaseClass {
  const found = CASE_CLASSES.find((one) => one === given);
  if (found) return found;
  const near = didYouMean(given, CASE_CLASSES);
  throw new CliError(`--class: got "${given}"${near}, expected some of ${CASE_CLASSES.join(', ')}`, EXIT.usage);
}

/** The names of failures in what `--json` has printed in an earlier run. */
function readBaseline(file: string | undefined): ReadonlySet<string> {
  if (file === undefined) return new Set();
  const report = attempt(() => JSON.parse(readFileSync(file, 'utf8')) as Partial<Result>);
  if (isObject(report) && Array.isArray(report.failures))
    return new Set((report.failures as readonly Failure[]).map(({ name }) => name));
  throw new CliError(`--baseline: ${file} is not what contract --json has printed`, EXIT.usage);
}

async function runCase(
  one: ReturnType<typeof contractCases>[number],
  document: readonly string[],
  known: ReadonlySet<string>,
  url: URL,
): Promise<Failure | undefined> {
  try {
    await one.run();
    return undefined;
  } catch (error) {
    if (!(error instanceof AssertionError)) {
      throw new CliError(`${url.href}: ${(error as Error).message}; is the server running?`, EXIT.usage);
    }
    const { name, class: what = 'token', operation } = one;
    const { mismatches = [], exchange } = error as { mismatches?: readonly Mismatch[]; exchange?: Exchange };
    const line = operation === undefined ? undefined : lineOf(document, operation);
    return {
      ...{ name, class: what, operation, isKnown: known.has(name) },
      differences: mismatches.length > 0 ? mismatches.map(describeMismatch) : error.message.split('\n').slice(1),
      ...(exchange && describeExchange(exchange, url)),
      ...(line !== undefined && { line }),
    };
  }
}

function isOfKeys(failure: Failure | undefined): boolean {
  return failure?.differences.some((one) => / 503\b/.test(one)) === true;
}

function explainDistrust({ differences }: Failure, issuer: HttpTestIssuer): string {
  const lines = [
    ...differences.map((one) => one.trim()),
    `Start the server with ${issuer.issuer} as its issuer and ${issuer.audience} as its audience (--audience names another)`,
    `and, if it uses Tillgate, TILLGATE_GENERATIONS=${issuer.issuer}/generations.`,
  ];
  return lines.join('\n');
}

function describeExchange({ request, response }: Exchange, url: URL): Pick<Failure, 'request' | 'response' | 'curl'> {
  const { method, target, headers, body } = request;
  const sent = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((one) => [name, shorten(one)]));
  const type = response.headers['content-type'];
  const quote = (text: string): string => `'${text.replaceAll("'", `'"'"'`)}'`;
  const flags = sent.map(([name, value]) => ` -H ${quote(`${name}: ${value}`)}`).join('');
  const data = body === undefined ? '' : ` --data ${quote(body)}`;
  return {
    request: `${method} ${shorten(target)}`,
    response: `${response.status}${type === undefined ? '' : ` ${type}`} ${response.text.slice(0, BODY_LENGTH)}`.trim(),
    curl: `curl -i --path-as-is -X ${method}${flags}${data} ${quote(url.origin + shorten(target))}`,
  };
}

/** Tokens in a report would be secrets in a log. */
function shorten(value: string): string {
  return value.replace(/[\w-]{10,}\.[\w-]{10,}\.[\w-]*/g, '<token>');
}

/** The line of an operation in a YAML document, found by its indentation; none in JSON. */
function lineOf(lines: readonly string[], operation: string): number | undefined {
  const [method = '', path = ''] = operation.split(' ');
  const names = [path, path.replace(/^\/[^/]+/, '')];
  const at = lines.findIndex((line) => names.includes(line.trim().replace(/^['"]?(.*?)['"]?:.*$/, '$1')));
  if (at < 0) return undefined;
  const below = lines.findIndex((line, index) => index > at && line.trim().startsWith(`${method.toLowerCase()}:`));
  return (below < 0 ? at : below) + 1;
}

/** The case that an operation fails which is open to anybody. */
const OPEN = ' refuses a request without a token';

/** Failures of one class with the same differences have one cause, and so have all of operations that are open. */
function byCause(failures: readonly Failure[]): readonly (readonly [Failure, ...Failure[]])[] {
  const groups = new Map<string, [Failure, ...Failure[]]>();
  const open = new Set(failures.filter(({ name }) => name.endsWith(OPEN)).map(({ operation }) => operation));
  for (const failure of failures) {
    const { differences, operation = '', name } = failure;
    const [path = ''] = operation.split(' ').slice(1);
    const sentence = name.slice(operation.length).replace(/ with(?:out)? .*$/, '');
    const cause = `${failure.class} ${sentence} ${differences[0]?.replaceAll(path, '').replace(/"[^"]*"|\d+ more|got \d+/g, '') ?? ''}`;
    const key = open.has(operation) && /^(token|scope)$/.test(failure.class) ? OPEN : cause;
    const group = groups.get(key);
    if (group) group.push(failure);
    else groups.set(key, [failure]);
  }
  return [...groups.values()];
}

function asText({ cases, failures, openapi, notices }: Result): string {
  const { documentation, security } = notices;
  const fresh = failures.filter(({ isKnown }) => !isKnown);
  const blocks = byCause(fresh).map(([first, ...others]) => {
    const operations = [...new Set(others.map(({ operation, name }) => operation ?? name))];
    // A response is one line, whatever the server sends: it must not look like another result.
    return [
      `red ${first.class}: ${first.name}`,
      ...first.differences.map((one) => escapeUnsafe(one.trim())),
      ...(first.line === undefined ? [] : [`${openapi}:${first.line}`]),
      ...(first.request === undefined
        ? []
        : [`> ${first.request}`, `< ${escapeUnsafe(first.response ?? '')}`, first.curl ?? '']),
      ...(others.length === 0 ? [] : [`and ${others.length} more: ${operations.slice(0, 5).join(', ')}`]),
    ].join('\n  ');
  });
  const known = failures.length - fresh.length;
  const listed =
    documentation.length === 0 ? [] : [`${documentation.length} operations respond otherwise than documented`];
  const sum = [
    `${cases.length} cases, ${fresh.length} red of ${blocks.length} causes`,
    ...(known > 0 ? [`${known} known by the baseline`] : []),
    ...listed,
  ].join(', ');
  const notes = security.length === 0 ? [] : [security.map((one) => `notice: ${one}`).join('\n')];
  return [...blocks, ...notes, sum].join('\n\n');
}
