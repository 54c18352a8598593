import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readState } from '../auth-server/store';
import { readSettings } from 'tillgate/env';
import type { Settings } from 'tillgate/env';
import { attempt, parseToken } from 'tillgate/internal';
import { ConfigurationError } from 'tillgate';
import type { Reason } from 'tillgate';
import { CliError, EXIT, print, write } from '../command';
import type { CliIo, CommandContext, CommandOptions } from '../command';
import { givenSecret, keptCredential } from '../credentials';
import { hasClient, requestToken, send } from '../http';
import type { HttpResponse } from '../http';
import { usesEmbedded } from '../settings';

/** `tillgate token <client>`: the token alone on stdout, so that `$(tillgate token pos-terminal)` works. */
export async function token(context: CommandContext, options: CommandOptions, clientId: string): Promise<void> {
  const { io } = context;
  const settings = readSettings(io.env);
  const flaw = flawOf(options, settings);
  const response = await obtainToken(io, settings, clientId, options);
  if (flaw === undefined) return print(context, response, response.access_token);
  const bad = await spoiled(response.access_token, flaw, options, settings);
  const reason = FLAWS[flaw];
  print(context, { access_token: bad, refused_as: reason }, bad);
  if (io.stderr.isTTY) write(io.stderr, `tillgate: an API refuses this token with 401 ${reason}`);
}

/** The flaws that a token can be given, and the reason with which a gate then refuses it. */
const FLAWS = {
  expired: 'expired',
  superseded: 'superseded',
  audience: 'wrong_audience',
  foreignKey: 'bad_signature',
  alg: 'algorithm_not_allowed',
} as const satisfies { readonly [Name in keyof CommandOptions]?: Reason };

type Flaw = keyof typeof FLAWS;

/**
 * Reads which flaw the options ask for; `undefined` where they ask for none.
 *
 * @throws CliError when they ask for several, or for one that does not exist
 * @throws ConfigurationError in production
 */
function flawOf(options: CommandOptions, settings: Settings): Flaw | undefined {
  const [flaw, ...others] = (Object.keys(FLAWS) as Flaw[]).filter((name) => options[name] !== undefined);
  if (flaw === undefined) return undefined;
  if (others.length > 0) {
    throw new CliError('give one of --expired, --superseded, --audience, --foreign-key and --alg', EXIT.usage);
  }
  if (options.alg !== undefined && options.alg !== 'none') {
    throw new CliError(`expected --alg none, got ${JSON.stringify(options.alg)}`, EXIT.usage);
  }
  if (settings.production) {
    throw new ConfigurationError(['NODE_ENV: got "production", where no bad tokens are made; unset it']);
  }
  return flaw;
}

/**
 * The good token shows what the client may get; the bad one never says more, and no gate accepts it. What is signed
 * again is signed with the key of the local data directory only.
 */
async function spoiled(good: string, flaw: Flaw, options: CommandOptions, settings: Settings): Promise<string> {
  const { header, claims } = readGood(good);
  // With a signature: without one the token would be malformed, which is another refusal.
  if (flaw === 'alg') return good.replace(/^[^.]*/, encode({ ...header, alg: 'none' }));
  if (flaw === 'foreignKey') return signed(header, claims, foreignKey(header['alg']));
  const key = await ownKey(header['kid'], settings);
  if (flaw === 'superseded') return signed(header, { ...claims, generation: Number(claims['generation']) - 1 }, key);
  const expired = inThePast(claims);
  if (flaw === 'expired') return signed(header, expired, key);
  if (options.audience === claims['aud']) {
    throw new CliError(
      `--audience ${JSON.stringify(options.audience)} is that of good tokens; name another`,
      EXIT.usage,
    );
  }
  // Expired as well: an API of that audience may trust this token server.
  return signed(header, { ...expired, aud: options.audience }, key);
}

type Members = Readonly<Record<string, unknown>>;

function readGood(good: string): { readonly header: Members; readonly claims: Members } {
  const parsed = attempt(() => parseToken(good));
  if (parsed) return parsed;
  throw new CliError('the access token of this server is not a JWT: no bad one can be made of it');
}

const HOUR_SECONDS = 3_600;

function inThePast(claims: Members): Members {
  const exp = Math.floor(Date.now() / 1000) - HOUR_SECONDS;
  return { ...claims, iat: exp - HOUR_SECONDS, exp };
}

/** The key that has signed the good token, from the data directory of this machine. */
async function ownKey(kid: unknown, { dataDir, authUrl, issuer }: Settings): Promise<KeyObject> {
  const signing = (await readState(join(dataDir, 'state.json')))?.keys.signing;
  if (signing && signing.kid === kid) return createPrivateKey({ key: signing.jwk, format: 'jwk' });
  throw new CliError(
    `this flaw needs the signing key, and ${dataDir} does not have the one of ${authUrl ?? issuer ?? 'this token server'}: ` +
      'it works with the embedded token server and its TILLGATE_DATA_DIR only; --foreign-key and --alg none work anywhere',
    EXIT.usage,
  );
}

function foreignKey(alg: unknown): KeyObject {
  if (alg === 'RS256') return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  if (alg === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  throw new CliError(`expected a token signed with RS256 or ES256, got ${JSON.stringify(alg)}`);
}

function signed(header: Members, claims: Members, key: KeyObject): string {
  const input = `${encode(header)}.${encode(claims)}`;
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

function encode(members: Members): string {
  return Buffer.from(JSON.stringify(members)).toString('base64url');
}

/** Response headers that are shown. */
const SHOWN = [
  'www-authenticate',
  'content-type',
  'location',
  'etag',
  'link',
  'allow',
  'retry-after',
  'ratelimit',
  'x-placeholder',
  'x-request-id',
];

/** `tillgate call <method> <path>`: status, main headers and body; fails when the API refuses. */
export async function call(
  context: CommandContext,
  options: CommandOptions,
  method: string,
  path: string,
): Promise<number> {
  const settings = readSettings(context.io.env);
  const url = settings.baseUrl.replace(/\/$/, '') + checkPath(path);
  const headers = readHeaders(options.header);
  const json = checkData(await readData(context.io, options.data), headers);
  const token = await callerToken(context, settings, options);
  const response = await send(context.io, settings, url, { method: checkMethod(method), token, json, headers });
  const shown = shownHeaders(response);
  const document = { status: response.status, headers: shown, body: response.body ?? response.text };
  print(context, document, asText(response, shown));
  return response.status < 400 ? EXIT.ok : EXIT.failed;
}

/** Without `--as` and `--token` the call carries no token: to see the 401. */
async function callerToken(
  { io }: CommandContext,
  settings: Settings,
  options: CommandOptions,
): Promise<string | undefined> {
  if (options.as !== undefined && options.token !== undefined) {
    throw new CliError('give --as or --token, not both', EXIT.usage);
  }
  if (options.as === undefined) return checkToken(options.token);
  return (await obtainToken(io, settings, options.as, options)).access_token;
}

/** What a header cannot carry would be quoted by the error about it. */
function checkToken(token: string | undefined): string | undefined {
  if (token === undefined || /^[\x20-\x7e]*$/.test(token)) return token;
  throw new CliError('--token: expected printable ASCII without line breaks', EXIT.usage);
}

function checkMethod(method: string): string {
  if (/^[A-Za-z]+$/.test(method)) return method.toUpperCase();
  throw new CliError(`expected a method such as GET, got ${JSON.stringify(method)}`, EXIT.usage);
}

function checkPath(path: string): string {
  if (path.startsWith('/')) return path;
  throw new CliError(`expected a path such as /v1/orders, got ${JSON.stringify(path)}`, EXIT.usage);
}

/** `name: value`, as curl has it. The message does not quote a value, which may be a secret. */
function readHeaders(lines: readonly string[] = []): Readonly<Record<string, string>> {
  return Object.fromEntries(
    lines.map((line) => {
      const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~\w-]+): *([\x20-\x7e]*)$/.exec(line) ?? [];
      if (name === '') throw new CliError("expected -H 'name: value', with printable ASCII", EXIT.usage);
      return [name.toLowerCase(), value];
    }),
  );
}

/** `@file` and `@-` name where the body is. */
async function readData(io: CliIo, data: string | undefined): Promise<string | undefined> {
  if (!data?.startsWith('@')) return data;
  try {
    return await (data === '@-' ? io.readStdin() : readFile(data.slice(1), 'utf8'));
  } catch (error) {
    throw new CliError(`--data: cannot read ${data.slice(1)}: ${(error as Error).message}`, EXIT.usage);
  }
}

function checkData(data: string | undefined, headers: Readonly<Record<string, string>>): string | undefined {
  if (data === undefined || headers['content-type'] !== undefined) return data;
  if (attempt(() => JSON.parse(data) as unknown) !== undefined) return data;
  throw new CliError('expected JSON in --data, for example --data \'{"name":"Espresso"}\'', EXIT.usage);
}

function shownHeaders({ headers }: HttpResponse): Record<string, string> {
  return Object.fromEntries(SHOWN.flatMap((name) => (headers.has(name) ? [[name, headers.get(name) ?? '']] : [])));
}

function asText({ status, statusText, body, text }: HttpResponse, headers: Record<string, string>): string {
  const head = [
    `${status} ${statusText}`.trimEnd(),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  const shown = body === undefined ? text : JSON.stringify(body, undefined, 2);
  return shown ? `${head.join('\n')}\n\n${shown}` : head.join('\n');
}

/**
 * Requests a token as a client, with the secret that was given or the one that is kept.
 *
 * @throws CliError when the secret or the scopes are not known, or the token is denied
 */
export async function obtainToken(
  io: CliIo,
  settings: Settings,
  clientId: string,
  options: CommandOptions,
): ReturnType<typeof requestToken> {
  const kept = await keptCredential(settings, clientId);
  const secret = (await givenSecret(io, options)) ?? kept?.client_secret;
  const scope = options.scope ?? kept?.scope;
  if (secret === undefined) throw await unknownSecret(io, settings, clientId);
  if (scope === undefined && usesEmbedded(settings))
    throw new CliError(`the scopes of ${clientId} are not known here; give --scope`, EXIT.usage);
  return requestToken(io, settings, { clientId, secret, scope });
}

/** Only the embedded token server is asked whether it knows the client: another one is told nothing without need. */
async function unknownSecret(io: CliIo, settings: Settings, clientId: string): Promise<CliError> {
  const exists = usesEmbedded(settings) ? await hasClient(io, settings, clientId) : undefined;
  const advice =
    exists === false
      ? `no client has this id; register it: ${io.programName} clients add ${clientId} --scope ...`
      : `give --secret or --secret-file, or make a new one: ${io.programName} clients rotate ${clientId}`;
  return new CliError(`the secret of ${clientId} is not known here; ${advice}`, EXIT.usage);
}
