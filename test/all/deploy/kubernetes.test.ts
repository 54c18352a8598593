import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { load } from 'js-yaml';
import { version } from '../../../package.json';
import { DRAIN_DEADLINE_MS } from '../../../src/app/serve';
import { authenticateOptions, readSettings } from '../../../src/settings/settings';

const run = promisify(execFile);
const SCHEMAS = 'kubernetes-validate==1.37.0';
const FOLDER = join(__dirname, '../../../deploy/kubernetes');
const FILES = readdirSync(FOLDER).filter((name) => name !== 'kustomization.yaml');

const hasPython = spawnSync('python3', ['-c', 'import venv, ensurepip']).status === 0;
if (!hasPython)
  console.warn('schemas of Kubernetes are not checked: python3 with venv is missing (apt-get install python3-venv)');
const withPython = hasPython ? describe : describe.skip;

type Labels = Readonly<Record<string, string>>;

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly timeoutSeconds?: number;
}

interface Deployment {
  readonly spec: {
    readonly replicas: number;
    readonly selector: { readonly matchLabels: Labels };
    readonly template: {
      readonly metadata: { readonly labels: Labels };
      readonly spec: {
        readonly enableServiceLinks: boolean;
        readonly terminationGracePeriodSeconds: number;
        readonly securityContext: { readonly runAsUser: number; readonly fsGroup: number };
        readonly containers: readonly [
          {
            readonly image: string;
            readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
            readonly env: readonly { readonly name: string; readonly value: string }[];
            readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
            readonly readinessProbe: Probe;
            readonly livenessProbe: Probe;
            readonly startupProbe: Probe;
            readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
          },
        ];
        readonly volumes: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[];
      };
    };
  };
}

function read<Manifest>(name: string): Manifest {
  return load(readFileSync(join(FOLDER, name), 'utf8')) as Manifest;
}

const { spec } = read<Deployment>('deployment.yaml');
const pod = spec.template.spec;
const [container] = pod.containers;
const dockerfile = readFileSync(join(FOLDER, '../Dockerfile'), 'utf8');
/** The variables of the image, then those of the pod. */
const env = {
  ...Object.fromEntries([...dockerfile.matchAll(/(TILLGATE_\w+)=(\S+)/g)].map(([, name = '', value]) => [name, value])),
  ...Object.fromEntries(container.env.map(({ name, value }) => [name, value])),
};

describe('deploy/kubernetes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-kubernetes-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  withPython('by the schemas of Kubernetes 1.37', () => {
    const validate = (...files: readonly string[]) =>
      run(join(folder, 'python/bin/kubernetes-validate'), ['--strict', '--quiet', ...files]);

    beforeAll(async () => {
      await run('python3', ['-m', 'venv', join(folder, 'python')]);
      await run(join(folder, 'python/bin/pip'), ['install', '--quiet', '--no-compile', SCHEMAS]);
    });

    it('every manifest is valid, and has no member that Kubernetes does not know', async () => {
      expect(await validate(...FILES.map((name) => join(FOLDER, name)))).toEqual({ stdout: '', stderr: '' });
    });

    it('a misspelt member is found', async () => {
      const text = readFileSync(join(FOLDER, 'deployment.yaml'), 'utf8');
      const file = join(folder, 'misspelt.yaml');
      writeFileSync(file, text.replace('readinessProbe:', 'readynessProbe:'));
      await expect(validate(file)).rejects.toMatchObject({
        code: 1,
        stdout: expect.stringContaining('readynessProbe') as string,
      });
    });
  });

  it('kustomization.yaml has every file, and the image of this version', () => {
    const { resources, images } = read<{ resources: string[]; images: { name: string; newTag: string }[] }>(
      'kustomization.yaml',
    );
    expect([...resources].sort()).toEqual(FILES);
    expect(images.map(({ name, newTag }) => `${name}:${newTag}`)).toEqual([`${container.image}:${version}`]);
  });

  it('Service, PodDisruptionBudget and NetworkPolicy are about the pods of the Deployment', () => {
    const { labels } = spec.template.metadata;
    expect(spec.selector.matchLabels).toEqual(labels);
    const service = read<{ spec: { selector: Labels; ports: { targetPort: string }[] } }>('service.yaml').spec;
    const budget = read<{ spec: { selector: object; minAvailable: number } }>('pod-disruption-budget.yaml').spec;
    const policy = read<{ spec: { podSelector: object; ingress: { ports: { port: string }[] }[] } }>(
      'network-policy.yaml',
    ).spec;
    expect([service.selector, budget.selector, policy.podSelector]).toEqual([
      labels,
      { matchLabels: labels },
      { matchLabels: labels },
    ]);
    expect(budget.minAvailable).toBe(spec.replicas - 1);
    expect(service.ports.map(({ targetPort }) => targetPort)).toEqual(['http']);
    expect(policy.ingress.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual(['http', 'admin']);
  });

  it('variables and secrets make a configuration, and its ports are those of the pod', () => {
    const secret = read<{ metadata: { name: string }; stringData: Labels }>('secret.yaml');
    const volumes = pod.volumes.flatMap(({ name, secret: one }) =>
      one?.secretName === secret.metadata.name ? [name] : [],
    );
    const [mount] = container.volumeMounts.filter(({ name }) => volumes.includes(name));
    const [key = ''] = Object.keys(secret.stringData);
    expect(env['TILLGATE_GENERATIONS_FILE']).toBe(`${mount?.mountPath}/${key}`);
    writeFileSync(join(folder, key), secret.stringData[key] ?? '');
    const settings = readSettings({ ...env, TILLGATE_GENERATIONS_FILE: join(folder, key), NODE_ENV: 'production' });
    expect(authenticateOptions(settings)).toMatchObject({
      generationSource: secret.stringData[key],
      audience: settings.baseUrl,
    });
    const ports = Object.fromEntries(container.ports.map(({ name, containerPort }) => [name, containerPort]));
    expect(ports).toEqual({ http: settings.port, admin: settings.adminPort });
    expect(container.volumeMounts.map(({ mountPath }) => mountPath)).toContain(settings.dataDir);
    expect(dockerfile).toContain(`\nUSER ${pod.securityContext.runAsUser}:${pod.securityContext.fsGroup}\n`);
  });

  it('the variables that a Service of this name would set are refused, so they are switched off', () => {
    expect(pod.enableServiceLinks).toBe(false);
    expect(() => readSettings({ TILLGATE_PORT: 'tcp://10.0.0.1:80', TILLGATE_SERVICE_HOST: '10.0.0.1' })).toThrow(
      'TILLGATE_SERVICE_HOST',
    );
  });

  it('probes ask the admin port, the one for readiness for longer than a start waits for the publisher', () => {
    const { readinessProbe, livenessProbe, startupProbe } = container;
    const asked = [readinessProbe, livenessProbe, startupProbe].map(({ httpGet }) => `${httpGet.port}${httpGet.path}`);
    expect(asked).toEqual(['admin/readyz', 'admin/livez', 'admin/livez']);
    expect(readinessProbe.timeoutSeconds).toBeGreaterThan(5);
  });

  it('a pod that stops has 5 s more than preStop and the API take at most', () => {
    const { preStop } = container.lifecycle;
    expect(pod.terminationGracePeriodSeconds).toBe(preStop.sleep.seconds + DRAIN_DEADLINE_MS / 1000 + 5);
  });
});
