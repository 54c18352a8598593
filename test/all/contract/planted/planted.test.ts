import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { contractCases, createTestIssuer } from '../../../../src/testing';
import type { CaseClass, ContractCases } from '../../../../src/testing';
import { listen } from '../../../support/listen';
import { INSTALL_FLAGS } from '../../package/consumer';
import { npm } from '../../package/npm';
import { frameworks } from './frameworks';
import type { Framework } from './frameworks';
import { OF_OWNERS } from './owners';
import { DOCUMENT as openapi, routesOf } from './parcels';
import type { Planted } from './planting';
import { IN_THREE_SHAPES } from './three-shapes';
import { USUAL } from './usual';

const PLANTED = { ...IN_THREE_SHAPES, ...OF_OWNERS, ...USUAL };

/** What is not among the packages of this repository. */
const PACKAGES = {
  '@hono/node-server': '^2.1.9',
  '@koa/router': '^15.0.0',
  fastify: '^5.12.8',
  hono: '^4.13.19',
  koa: '^3.3.0',
  'koa-bodyparser': '^4.4.1',
};

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tillgate-planted-'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: PACKAGES }));
  const { exitCode, errors } = await npm(folder, 'install', '--ignore-scripts', ...INSTALL_FLAGS);
  if (exitCode !== 0) throw new Error(errors);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

type Mode = 'in this process' | 'over HTTP';

/** Runs the cases of a server until one fails, unless all are asked for. */
async function redOf(framework: Framework, mode: Mode, planted: Planted, what?: CaseClass): Promise<readonly string[]> {
  const issuer = createTestIssuer();
  const mistake = typeof planted === 'function' ? planted(framework.refuse) : planted;
  const app = await framework.listener(routesOf(issuer, framework.refuse, mistake));
  const classes = what && [what];
  if (mode === 'in this process') return failing(contractCases({ app, openapi, issuer, classes }), what);
  const { url, close } = await listen(app);
  return failing(contractCases({ url, openapi, issuer, classes, propagationMs: 0 }), what).finally(close);
}

async function failing(cases: ContractCases, what?: CaseClass): Promise<readonly string[]> {
  const red: string[] = [];
  for (const { class: own, run } of cases) {
    // The cases of scopes say what a success is: they always run.
    const isCounted = what === undefined || own === what;
    await run().catch((error: Error) => isCounted && red.push(error.message));
    if (what !== undefined && red.length > 0) break;
  }
  return red;
}

const rows = ['Express', 'Koa', 'Fastify', 'Hono'].flatMap((name) =>
  (['in this process', 'over HTTP'] as const).map((mode) => [name, mode] as const),
);

it.each(rows)(
  '%s, %s: nothing is red in a right server, and every mistake is',
  async (name, mode) => {
    const framework = frameworks(folder)[name] as Framework;
    expect(await redOf(framework, mode, {})).toEqual([]);
    const missed: string[] = [];
    for (const [mistake, [what, plant]] of Object.entries(PLANTED)) {
      if ((await redOf(framework, mode, plant(), what)).length === 0) missed.push(mistake);
    }
    expect(missed).toEqual([]);
  },
  600_000,
);
