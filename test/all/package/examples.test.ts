import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install } from './consumer';
import { npm } from './npm';
import { packTillgate } from './tarball';

const EXAMPLES = join(__dirname, '../../../examples');
let folder: string;
let tarballs: readonly string[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tillgate-examples-'));
  tarballs = await packTillgate('gate', 'testing', 'app', 'cli');
}, 300_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

it.each(['express5-typescript', 'express4-commonjs', 'nestjs', 'mcp', 'nats-jetstream', 'migration'])(
  'the example %s passes its own tests with the packed package',
  async (name) => {
    const project = join(folder, name);
    await cp(join(EXAMPLES, name), project, { recursive: true });
    expect(await install(project, tarballs)).toMatchObject({ exitCode: 0 });
    const { exitCode, output, errors } = await npm(project, 'test');
    if (exitCode !== 0) throw new Error(`${output}\n${errors}`);
  },
  240_000,
);
