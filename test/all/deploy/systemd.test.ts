import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DRAIN_DEADLINE_MS } from '../../../src/app/serve';
import { readSettings } from '../../../src/settings/settings';
import { EXIT } from '../../../src/cli/command';
import { requireCommand } from '../setup/packages';

const run = promisify(execFile);
const UNIT = readFileSync(join(__dirname, '../../../deploy/systemd/tillgate.service'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'tillgate-systemd-'));
const file = join(folder, 'tillgate.service');

beforeAll(() => {
  requireCommand('systemd-analyze', 'apt-get install systemd');
  // The program has to be there; on this machine it may be elsewhere.
  writeFileSync(file, UNIT.replace('ExecStart=/usr/bin/node ', `ExecStart=${process.execPath} `));
});
afterAll(() => rmSync(folder, { recursive: true }));

function settingOf(name: string): string | undefined {
  return new RegExp(`^${name}=(.*)$`, 'm').exec(UNIT)?.[1];
}

describe('deploy/systemd/tillgate.service', () => {
  it('systemd-analyze verify finds nothing', async () => {
    const { stdout, stderr } = await run('systemd-analyze', ['verify', file]);
    // Units of the machine are loaded with it, and may have warnings of their own.
    expect((stdout + stderr).split('\n').filter((line) => line.includes('tillgate'))).toEqual([]);
  });

  it('a misspelt setting is found', async () => {
    writeFileSync(join(folder, 'misspelt.service'), readFileSync(file, 'utf8').replace('UMask=', 'UMasc='));
    const { stderr } = await run('systemd-analyze', ['verify', join(folder, 'misspelt.service')]);
    expect(stderr).toMatch(/Unknown key (name )?'UMasc'/);
  });

  it('systemd-analyze security rates what a process that is taken over can reach as low', async () => {
    const { stdout } = await run('systemd-analyze', ['security', '--offline=true', '--threshold=15', file]);
    expect(stdout).toContain('Overall exposure level for tillgate.service');
  });

  it('gives requests that are under way the time that they have, and does not repeat a wrong configuration', () => {
    expect(Number(settingOf('TimeoutStopSec'))).toBe(DRAIN_DEADLINE_MS / 1000 + 5);
    expect(Number(settingOf('RestartPreventExitStatus'))).toBe(EXIT.configuration);
  });

  it('hands its credential to the API as a file', () => {
    const [credential] = settingOf('LoadCredential')?.split(':') ?? [];
    writeFileSync(join(folder, credential ?? ''), 'redis://:geheim@127.0.0.1\n');
    const text = settingOf('Environment')?.replace('%d', folder).replace('%S', '/var/lib') ?? '';
    const env = Object.fromEntries(text.split(' ').map((pair) => pair.split('='))) as Record<string, string>;
    const { generationSource, dataDir } = readSettings(env);
    expect({ generationSource, dataDir }).toEqual({
      generationSource: 'redis://:geheim@127.0.0.1',
      dataDir: `/var/lib/${settingOf('StateDirectory')}`,
    });
  });
});
