import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { load } from 'js-yaml';
import { LIMITS } from '../../../src/app/server';
import { authenticateOptions, readSettings } from '../../../src/gate/env';

const FOLDER = join(__dirname, '../../../deploy');
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');

interface Service {
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly networks?: readonly string[];
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: object;
  readonly stop_grace_period?: string;
}

const { services, networks, volumes } = load(read('compose.yaml')) as {
  readonly services: Readonly<Record<'api' | 'redis', Service>>;
  readonly networks: object;
  readonly volumes: object;
};

/** The variables of a service, when the shell has only these. */
function environmentOf({ environment = {} }: Service, shell: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).map(([name, text]) => [
      name,
      text === null
        ? shell[name]
        : text.replace(/\$\{(\w+):-(.*?)\}/, (_all, given: string, other: string) => shell[given] ?? other),
    ]),
  );
}

describe('deploy/compose.yaml', () => {
  it('refers to networks, volumes, services with a health check, and files that exist', () => {
    for (const service of Object.values<Service>(services)) {
      expect(Object.keys(networks)).toEqual(expect.arrayContaining([...(service.networks ?? [])]));
      const mounted = service.volumes?.map((volume) => volume.split(':')[0]) ?? [];
      expect(Object.keys(volumes)).toEqual(expect.arrayContaining(mounted));
      for (const name of Object.keys(service.depends_on ?? {}))
        expect(services).toHaveProperty([name, 'healthcheck', 'test']);
    }
    const { context = '', dockerfile = '' } = services.api.build ?? {};
    const root = join(FOLDER, context);
    const copied = [...readFileSync(join(root, dockerfile), 'utf8').matchAll(/^COPY (?!--)(.*) \S+$/gm)];
    const sources = copied.flatMap(([, names = '']) => names.split(' ')).filter((name) => name !== '.');
    const given = [...read('Dockerfile.dockerignore').matchAll(/^!(.*)$/gm)].map(([, name = '']) => name);
    expect([...sources, ...given].filter((name) => !existsSync(join(root, name)))).toEqual([]);
    expect(sources.filter((name) => !given.includes(name.split('/')[0] ?? ''))).toEqual([]);
  });

  it('starts what the build makes of a source', () => {
    const [, started = ''] = /^CMD \["(.*)"\]$/m.exec(read('Dockerfile')) ?? [];
    expect(existsSync(join(FOLDER, '..', started.replace('/dist/', '/').replace(/js$/, 'ts')))).toBe(true);
    expect(read('Dockerfile')).toContain(`COPY --from=build /src/${dirname(started)} ${dirname(started)}\n`);
  });

  it('configures the API as it is started in production', () => {
    const image = [...read('Dockerfile').matchAll(/(TILLGATE_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]);
    const shell = { TILLGATE_AUTH_URL: 'https://login.example.com', TILLGATE_AUDIENCE: 'https://api.example.com' };
    const variables = { ...Object.fromEntries(image), ...environmentOf(services.api, shell) } as NodeJS.ProcessEnv;
    const settings = readSettings({ ...variables, NODE_ENV: 'production' });
    expect(services.api.ports).toEqual([`127.0.0.1:${settings.port}:${settings.port}`]);
    expect(authenticateOptions(settings)).toMatchObject({
      issuer: 'https://login.example.com',
      audience: 'https://api.example.com',
      generationSource: 'redis://redis:6379',
    });
    expect(services).toHaveProperty('redis');
  });

  it('gives the API 5 s more than it takes at most to stop', () => {
    expect(services.api.stop_grace_period).toBe(`${LIMITS.drainDeadlineMs / 1000 + 5}s`);
  });
});
