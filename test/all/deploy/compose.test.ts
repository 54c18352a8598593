import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { DRAIN_DEADLINE_MS } from '../../../src/app/serve';
import { COMMANDS } from '../../../src/cli/command-table';
import { authenticateOptions, readSettings } from '../../../src/settings/settings';
import { requireCommand } from '../setup/packages';

const FOLDER = join(__dirname, '../../../deploy');
const OVERLAYS = readdirSync(FOLDER).filter((name) => /^compose\..+\.yaml$/.test(name));

type Dependencies = Readonly<Record<string, { readonly condition?: string }>>;

interface Service {
  readonly image?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly secrets?: readonly string[];
  readonly networks?: readonly string[];
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: readonly string[] | Dependencies;
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly stop_grace_period?: string;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks?: object;
  readonly volumes?: object;
  readonly secrets?: Readonly<Record<string, { readonly file: string }>>;
}

function read(name: string): Compose {
  return load(readFileSync(join(FOLDER, name), 'utf8')) as Compose;
}

function dependencies({ depends_on: given = {} }: Service = {}): Dependencies {
  return Array.isArray(given)
    ? Object.fromEntries((given as string[]).map((name) => [name, {}]))
    : (given as Dependencies);
}

/** As Compose merges files: members of maps one by one, elements of lists after each other. */
function merged(base: Compose, over: Compose): Compose {
  const services = { ...base.services };
  for (const [name, own] of Object.entries(over.services)) {
    const { environment, secrets, ...rest } = services[name] ?? {};
    services[name] = {
      ...rest,
      ...own,
      environment: { ...environment, ...own.environment },
      secrets: [...(secrets ?? []), ...(own.secrets ?? [])],
      depends_on: { ...dependencies(rest), ...dependencies(own) },
    };
  }
  return {
    services,
    networks: { ...base.networks, ...over.networks },
    volumes: { ...base.volumes, ...over.volumes },
    secrets: { ...base.secrets, ...over.secrets },
  };
}

const BASE = read('compose.yaml');
const SETUPS = [['compose.yaml', BASE] as const, ...OVERLAYS.map((name) => [name, merged(BASE, read(name))] as const)];
const LISTEN = /listen (\d+);/.exec(readFileSync(join(FOLDER, 'nginx/tillgate.conf'), 'utf8'))?.[1];
const { port: API_PORT, adminPort: ADMIN_PORT } = readSettings({ TILLGATE_ADMIN_PORT: '9090' });

/** The variables of a container, when the shell has only these. */
function environmentOf({ environment = {} }: Service, shell: Record<string, string>): Record<string, string> {
  const variables = Object.entries(environment).flatMap(([name, text]) => {
    const value =
      text === null
        ? shell[name]
        : text.replace(/\$\{(\w+):[-?](.*?)\}/g, (_all, given: string, other: string) => shell[given] ?? other);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(variables) as Record<string, string>;
}

describe.each(SETUPS)('deploy/%s', (_name, { services, networks = {}, volumes = {}, secrets = {} }) => {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-compose-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(Object.entries(services))(
    '%s refers to services, networks, volumes, secrets and files that exist',
    (_service, service) => {
      const { networks: joined = ['none'], secrets: given = [], volumes: mounts = [] } = service;
      expect(Object.keys(services)).toEqual(expect.arrayContaining(Object.keys(dependencies(service))));
      expect(Object.keys(networks)).toEqual(expect.arrayContaining([...joined]));
      expect(Object.keys(secrets)).toEqual(expect.arrayContaining([...given]));
      const sources = mounts.map((volume) => volume.split(':')[0] ?? '');
      const isThere = (source: string) =>
        source.startsWith('.') ? existsSync(join(FOLDER, source)) : source in volumes;
      expect(sources.filter((source) => !isThere(source))).toEqual([]);
    },
  );

  it('what another service waits for says when it is healthy', () => {
    const awaited = Object.values(services).flatMap((service) =>
      Object.entries(dependencies(service)).flatMap(([name, { condition }]) =>
        condition === 'service_healthy' ? [name] : [],
      ),
    );
    // The image of Tillgate has its own check.
    const silent = awaited.filter((name) => services[name]?.image !== 'tillgate' && !services[name]?.healthcheck?.test);
    expect(silent).toEqual([]);
  });

  it('secrets are in a folder that is not committed', () => {
    expect(readFileSync(join(FOLDER, '../.gitignore'), 'utf8')).toContain('\ndeploy/secrets/\n');
    for (const { file } of Object.values(secrets)) expect(file).toMatch(/^\.\/secrets\//);
  });

  it.each(Object.entries(services).filter(([, { image }]) => image === 'tillgate'))(
    '%s is configured by variables that are known, in values that are accepted',
    (_service, service) => {
      const env = environmentOf(service, { TILLGATE_AUTH_URL: 'https://login.example.com' });
      for (const name of Object.keys(env).filter((one) => one.endsWith('_FILE'))) {
        expect(service.secrets?.map((secret) => `/run/secrets/${secret}`)).toContain(env[name]);
        env[name] = join(folder, name);
        writeFileSync(env[name], 'postgres://tillgate:geheim@postgres/tillgate\n');
      }
      const settings = readSettings({ ...env, NODE_ENV: 'production' });
      expect(Object.keys(services)).toContain(new URL(settings.generationSource ?? '').hostname);
      if (service.command === undefined) expect(authenticateOptions(settings).issuer).toMatch(/^https?:/);
    },
  );

  it('commands of the image and their options exist', () => {
    const commands = Object.values(services).flatMap(({ image, command = [] }) =>
      image === 'tillgate' ? [command] : [],
    );
    for (const [first, ...rest] of commands.filter(({ length }) => length > 0)) {
      const group = COMMANDS.find(({ usage }) => usage.split(' ')[0] === first);
      const entry = group?.commands?.find(({ usage }) => usage.split(' ')[0] === rest[0]);
      const known = entry?.options?.map(([flags]) => /--[\w-]+/.exec(flags)?.[0]);
      expect(known).toEqual(expect.arrayContaining(rest.slice(1).map((option) => option.split('=')[0])));
    }
  });

  it('the APIs have 5 s more than they take at most to stop', () => {
    const stop = `${DRAIN_DEADLINE_MS / 1000 + 5}s`;
    for (const name of ['api-1', 'api-2']) expect(services[name]?.stop_grace_period).toBe(stop);
  });

  it('nginx and Prometheus call the ports that the services have', () => {
    expect(services['nginx']?.ports).toEqual([`127.0.0.1:8080:${LISTEN}`]);
    const upstreams = readFileSync(join(FOLDER, 'nginx/tillgate.conf'), 'utf8').matchAll(/^ +server (\S+) /gm);
    expect([...upstreams].map(([, upstream]) => upstream)).toEqual([`api-1:${API_PORT}`, `api-2:${API_PORT}`]);
    const config = load(readFileSync(join(FOLDER, 'prometheus/prometheus.yml'), 'utf8')) as {
      scrape_configs: { static_configs: { targets: string[] }[] }[];
    };
    const targets = config.scrape_configs.flatMap((job) => job.static_configs.flatMap((one) => one.targets));
    expect(targets).toEqual([`api-1:${ADMIN_PORT}`, `api-2:${ADMIN_PORT}`]);
  });
});

it('promtool check config accepts deploy/prometheus/prometheus.yml, and finds its alerts', () => {
  requireCommand('promtool', 'apt-get install prometheus');
  const { status, stdout } = spawnSync('promtool', ['check', 'config', join(FOLDER, 'prometheus/prometheus.yml')], {
    encoding: 'utf8',
  });
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: expect.stringMatching(/SUCCESS: \d+ rules found/) as string,
  });
});
