import { AssertionError } from 'node:assert';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { attempt, didYouMean, escapeUnsafe, isObject } from 'tillgate/internal';
import { contractCases, startTestIssuer } from '@tillgate/testing';
import type {
  CaseClass,
  ContractCases,
  ContractCasesOptions,
  ContractReport,
  HttpTestIssuer,
  HttpTestIssuerOptions,
} from '@tillgate/testing';
import { CASE_CLASSES, failuresIn, parseYaml } from '@tillgate/testing/internal';
import { EXIT, orUsageError, readHeaders, usageError, type CommandContext, type CommandOptions } from '../command';
import { print, quoted, write } from '../output';

/** One requirement that is not met. */
interface Failure {
  readonly name: string;
  /** Name of the case that has it. */
  readonly case: string;
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
  /** What was tested, and what is worth a look. */
  readonly report: Omit<ContractReport, 'toString'>;
}

const BODY_LENGTH = 200;
const CONFIG_FILE = 'tillgate.contract.yaml';
const WAIT_SECONDS = 30;
const UP_PAUSE_MS = 200;
const KEY_TRIES = 30;
const KEY_PAUSE_MS = 500;

/** `tillgate contract`: the contract cases against a server that runs. */
export async function contract(context: CommandContext, options: CommandOptions): Promise<number> {
  const { io } = context;
  const { openapi = 'openapi.yaml', issuerPort = '4000', baseline, ...others } = readSettings(options);
  const { audience, preset, scopes, ...settings } = others;
  const url = attempt(() => new URL(settings.url ?? ''));
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw usageError('--url: expected the URL of the server, for example --url http://127.0.0.1:3000');
  }
  const known = readBaseline(baseline);
  const issuer = await start({ port: Number(issuerPort), audience, preset, scopes });
  try {
    const trust = `issuer ${issuer.issuer}, audience ${issuer.audience}`;
    write(
      io.stderr,
      `The server must trust ${trust}, and get its keys from ${issuer.jwksUri}; a gate of Tillgate also its changes: TILLGATE_GENERATIONS=${issuer.issuer}/generations`,
    );
    const { allowUntested, waitSeconds, ...given } = settings;
    // Whatever is wrong with the document, nothing was tested.
    const cases = orUsageError(() => contractCases({ ...given, url: url.href, openapi, issuer }));
    await untilUp(url, waitSeconds);
    const lines = attempt(() => readFileSync(openapi, 'utf8').split('\n')) ?? [];
    const failures = await runAll(cases, { io, url, known, issuer, lines });
    showProgress(io.stderr, '');
    const listed = cases.map(({ name, class: what }) => ({ name, class: what }));
    const result: Result = { url: url.href, openapi, cases: listed, failures, report: cases.report() };
    print(context, result, asText(result));
    const { tested, notTested, ownersNotTested: owners } = result.report;
    if (failures.some(({ isKnown }) => !isKnown)) return EXIT.failed;
    if (tested.length > 0 && (notTested.length + owners.length === 0 || allowUntested)) return EXIT.ok;
    const hint = tested.length === 0 ? 'nothing was tested' : '--allow-untested accepts that';
    const owned = owners.length === 0 ? '' : `, and the x-owner of ${owners.length}`;
    write(io.stderr, `${openapi}: ${notTested.length} operations were not tested${owned}: ${hint}`);
    return EXIT.usage;
  } finally {
    showProgress(io.stderr, '');
    await issuer.close();
  }
}

/** Rewrites the last line of a terminal. */
function showProgress(stderr: CommandContext['io']['stderr'], text: string): void {
  if (stderr.isTTY) stderr.write(`\r\x1b[K${text}`);
}

/** What the cases of a run share. */
interface Run {
  readonly io: CommandContext['io'];
  readonly url: URL;
  /** Names of the failures in the baseline. */
  readonly known: ReadonlySet<string>;
  readonly issuer: HttpTestIssuer;
  /** Lines of the document. */
  readonly lines: readonly string[];
}

/** Runs the cases one after the other. */
async function runAll(cases: ContractCases, run: Run): Promise<readonly Failure[]> {
  const failures: Failure[] = [];
  for (const [index, one] of cases.entries()) {
    showProgress(run.io.stderr, `${index + 1} of ${cases.length} cases, ${redCases(failures)} red`);
    let found = await runCase(one, run);
    // A server that started before this issuer tries again to get its keys.
    for (let tries = 0; one.class === undefined && isOfKeys(found[0]) && tries < KEY_TRIES; tries++) {
      await wait(KEY_PAUSE_MS);
      found = await runCase(one, run);
    }
    if (found[0] && one.class === undefined) throw usageError(explainDistrust(found[0], run.issuer));
    failures.push(...found);
  }
  return failures;
}

/** Waits until the server sends any response. */
async function untilUp(url: URL, seconds: number): Promise<void> {
  const deadlineMs = performance.now() + seconds * 1000;
  while (performance.now() < deadlineMs) {
    const response = await fetch(url, { method: 'HEAD', redirect: 'manual' }).catch(() => undefined);
    if (response) return;
    await wait(UP_PAUSE_MS);
  }
}

async function start(given: HttpTestIssuerOptions): Promise<HttpTestIssuer> {
  try {
    return await startTestIssuer(given);
  } catch (error) {
    const { message } = error as Error;
    // It names the option of the configuration file.
    if (error instanceof TypeError && !message.includes('"port"')) throw usageError(message);
    throw usageError(`--issuer-port ${given.port}: ${message}; choose another one`);
  }
}

/** What the command takes besides the options of `contractCases()`. */
interface Settings extends Omit<ContractCasesOptions, 'openapi' | 'issuer' | 'url' | 'app' | 'beforeGuard'> {
  readonly url?: string;
  readonly openapi?: string;
  readonly issuerPort?: string | number;
  readonly audience?: string;
  readonly preset?: HttpTestIssuerOptions['preset'];
  readonly scopes?: HttpTestIssuerOptions['scopes'];
  readonly baseline?: string;
  readonly allowUntested?: boolean;
  readonly waitSeconds: number;
}

/** The flags, and what the configuration file has beside them. */
function readSettings(options: CommandOptions): Settings {
  const { json: _json, config, wait: givenWait, owner, class: classes, header, generations, ...plain } = options;
  const file = config ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined);
  const { wait: fileWait, ...fromFile } = (file === undefined ? {} : readConfig(file)) as Partial<Settings> & {
    wait?: unknown;
  };
  if (![undefined, 'quick', 'full'].includes(plain.depth)) {
    throw usageError(`--depth: got "${plain.depth}", expected quick or full`);
  }
  const waitSeconds = Number(givenWait ?? fileWait ?? WAIT_SECONDS);
  if (!(waitSeconds >= 0)) throw usageError(`--wait: got "${givenWait}", expected seconds`);
  const flags = {
    ...plain,
    generations: generations === undefined ? undefined : true,
    headers: header && { ...fromFile.headers, ...readHeaders(header) },
    classes: classes?.split(',').map(readClass),
    ...ownersOf(owner),
  };
  const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
  return { ...fromFile, ...given, waitSeconds };
}

function readConfig(file: string): object {
  const found = orUsageError(() => parseYaml(file), '--config: ');
  if (isObject(found)) return found;
  throw usageError(`--config: ${file} must be an object of options: url, openapi, requests, headers, ...`);
}

function ownersOf(given: string | undefined): { readonly owners?: readonly [string, string] } {
  if (given === undefined) return {};
  const [first, second, ...others] = given.split(',');
  if (!first || !second || others.length > 0) {
    throw usageError(`--owner: got "${given}", expected two client ids, for example till-7,kiosk-2`);
  }
  return { owners: [first, second] };
}

function readClass(given: string): CaseClass {
  const found = CASE_CLASSES.find((one) => one === given);
  if (found) return found;
  const near = didYouMean(given, CASE_CLASSES);
  throw usageError(`--class: got "${given}"${near}, expected some of ${CASE_CLASSES.join(', ')}`);
}

/** The names of failures in what `--json` has printed in an earlier run. */
function readBaseline(file: string | undefined): ReadonlySet<string> {
  if (file === undefined) return new Set();
  const report = attempt(() => JSON.parse(readFileSync(file, 'utf8')) as Partial<Result>);
  if (isObject(report) && Array.isArray(report.failures))
    return new Set((report.failures as readonly Failure[]).map(({ name }) => name));
  throw usageError(`--baseline: ${file} is not what contract --json has printed`);
}

async function runCase(one: ContractCases[number], { lines, known, url }: Run): Promise<readonly Failure[]> {
  try {
    await one.run();
    return [];
  } catch (error) {
    const { name, class: what = 'token', operation } = one;
    // Later the server has responded already: what it does to one case does not end the others.
    if (!(error instanceof AssertionError) && one.class === undefined) {
      throw usageError(`${url.href}: ${(error as Error).message}; is the server running?`);
    }
    const line = operation === undefined ? undefined : lineOf(lines, operation);
    return failuresIn(error, name).map(({ name: own, differences, exchange }) => ({
      name: own,
      case: name,
      class: what,
      operation,
      differences,
      isKnown: known.has(own),
      ...(exchange && describeExchange(exchange, url)),
      ...(line !== undefined && { line }),
    }));
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

function describeExchange(
  { request, response, caller = 'a good token' }: NonNullable<ReturnType<typeof failuresIn>[number]['exchange']>,
  url: URL,
): Pick<Failure, 'request' | 'response' | 'curl'> {
  const { method, target, headers, body } = request;
  // Tokens in a report would be secrets in a log.
  const shorten = (text: string): string => text.replace(/[\w-]{10,}\.[\w-]{10,}\.[\w-]*/g, `<${caller}>`);
  const sent = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((one) => [name, shorten(one)]));
  const type = response.headers['content-type'];
  const flags = sent.map(([name, value]) => ` -H ${quoted(`${name}: ${value}`)}`).join('');
  const data = body === undefined ? '' : ` --data ${quoted(body)}`;
  return {
    request: `${method} ${shorten(target)}`,
    response:
      response.dropped ??
      `${response.status}${type === undefined ? '' : ` ${type}`} ${response.text.slice(0, BODY_LENGTH)}`.trim(),
    curl: `curl -i --path-as-is -X ${method}${flags}${data} ${quoted(url.origin + shorten(target))}`,
  };
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

/** The case that fails if an operation is open to every caller. */
const OPEN = ' refuses a request without a token';

/** A 500 is an error of the app, whatever the token lacks. */
const OF_APP = / fails with 500 for /;
/** What needs no other form of the request, before what does. */
const PLAIN = ['token', 'scope', 'app'];
/** What an operation that is open to every caller refuses to nobody. */
const OF_OPEN: readonly CaseClass[] = ['token', 'scope', 'form', 'state'];

/** How many cases have failed. */
function redCases(failures: readonly Failure[]): number {
  return new Set(failures.map((one) => one.case)).size;
}

/** Failures of one class with the same differences have one cause, and so have all of operations that are open; plain causes first. */
function byCause(failures: readonly Failure[]): readonly (readonly [title: string, Failure, ...Failure[]])[] {
  const groups = new Map<string, [title: string, Failure, ...Failure[]]>();
  const open = new Set(failures.filter(({ name }) => name.endsWith(OPEN)).map(({ operation }) => operation));
  for (const failure of failures) {
    const { differences, operation = '', name } = failure;
    const [path = ''] = operation.split(' ').slice(1);
    const sentence = name.slice(operation.length).replace(/ with(?:out)? .*$/, '');
    const cause = `${failure.class} ${sentence} ${differences[0]?.replaceAll(path, '').replace(/"[^"]*"|\d+ more|got \d+/g, '') ?? ''}`;
    const isOpen = open.has(operation) && OF_OPEN.includes(failure.class);
    const what = OF_APP.test(name) ? 'app' : failure.class;
    const group = groups.get(isOpen ? OPEN : cause);
    if (group) group.push(failure);
    else groups.set(isOpen ? OPEN : cause, [`${what}: ${isOpen ? `${operation} is open` : name}`, failure]);
  }
  const rankOf = ([title]: readonly [string, ...unknown[]]): number =>
    title.endsWith(' is open') ? 0 : PLAIN.findIndex((one) => title.startsWith(`${one}:`)) + 1 || PLAIN.length + 1;
  return [...groups.values()].sort((a, b) => rankOf(a) - rankOf(b));
}

/** How many untested operations are named; further ones are only counted. */
const LISTED = 20;

/** The result for people. */
function asText({ cases, failures, openapi, report }: Result): string {
  const { documentation, refusals, tested, public: open, notTested, limited, ownersNotTested, withoutCase } = report;
  const fresh = failures.filter(({ isKnown }) => !isKnown);
  const blocks = byCause(fresh).map(([title, first, ...others]) => {
    const operations = [...new Set(others.map(({ operation, name }) => operation ?? name))];
    // A response is one line, whatever the server sends: it must not look like another result.
    return [
      `red ${title}`,
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
    `${cases.length} cases, ${redCases(fresh)} red of ${blocks.length} causes`,
    ...(known > 0 ? [`${known} known by the baseline`] : []),
    ...listed,
  ].join(', ');
  const notes = [
    ...refusals.map((one) => `notice: ${one}`),
    ...limited.map((name) => `notice: ${name} was attacked less: the rate limit leaves too few requests`),
    ...withoutCase.map((one) => `notice: no case of ${one}`),
    ...ownersNotTested.map((one) => `x-owner not tested: ${one}`),
    ...notTested.slice(0, LISTED).map((one) => `not tested: ${one}`),
    ...(notTested.length > LISTED ? [`not tested: ${notTested.length - LISTED} more`] : []),
  ];
  const noted = notes.length === 0 ? [] : [notes.join('\n')];
  // What a green run is worth.
  const account = `${tested.length} operations tested, ${open.length} public by the document, ${notTested.length} not tested`;
  return [...blocks, ...noted, `${sum}\n${account}`].join('\n\n');
}
