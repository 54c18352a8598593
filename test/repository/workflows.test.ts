import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import rooms from '../../src/rooms.json';

const FOLDER = join(__dirname, '../../.github/workflows');

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly environment?: string;
  readonly needs?: string;
  readonly steps: readonly Step[];
}

interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const workflows = readdirSync(FOLDER).map((name) => {
  const text = readFileSync(join(FOLDER, name), 'utf8');
  return { name, text, workflow: load(text) as Workflow };
});
const jobs = workflows.flatMap(({ name, workflow }) =>
  Object.entries(workflow.jobs).map(([job, content]) => ({ name: `${name}: ${job}`, workflow, job: content })),
);
const steps = jobs.flatMap(({ job }) => job.steps);

/** A job without permissions of its own has those of its workflow. */
function mayWrite({ workflow, job }: (typeof jobs)[number]): readonly string[] {
  const permissions = job.permissions ?? workflow.permissions ?? { everything: 'write' };
  return Object.entries(permissions).flatMap(([scope, access]) => (access === 'write' ? [scope] : []));
}

function runsOf({ steps: all }: Job): readonly string[] {
  return all.flatMap(({ run }) => run ?? []);
}

describe('the workflows', () => {
  it('pin every action to a commit, with its version as a comment', () => {
    const used = steps.flatMap(({ uses }) => uses ?? []);
    const lines = workflows.flatMap(({ text }) => text.match(/^.*\buses:.*$/gm) ?? []);
    expect(used.length).toBeGreaterThan(5);
    expect(lines).toHaveLength(used.length);
    expect(lines.filter((line) => !/ uses: [\w-]+(\/[\w-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([]);
  });

  it('leave no credentials of the checkout to later steps', () => {
    const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'));
    expect(checkouts.length).toBeGreaterThan(2);
    expect(checkouts.filter((step) => step.with?.['persist-credentials'] !== false)).toEqual([]);
  });

  it('may write in three jobs only, which report findings, publish and release', () => {
    const writers = jobs.map((one) => [one.name, mayWrite(one)] as const).filter(([, scopes]) => scopes.length > 0);
    expect(writers).toEqual([
      ['codeql.yml: analyze', ['security-events']],
      ['publish.yml: publish', ['id-token']],
      ['publish.yml: release', ['contents']],
    ]);
  });

  it('run no script of a dependency or of the repository where they may publish', () => {
    const publish = jobs.find(({ name }) => name === 'publish.yml: publish')!.job;
    const published = rooms.filter(({ isPublished }) => isPublished).map(({ name }) => name);
    const tarballs = published.map((name) =>
      name === 'tillgate' ? 'tillgate-[0-9]' : `${name.slice(1).replace('/', '-')}-`,
    );
    expect(runsOf(publish)).toEqual(
      tarballs.map((name) => `npm publish ./${name}*.tgz --provenance --access public --ignore-scripts`),
    );
    expect(publish.steps.map(({ uses }) => uses?.split('@')[0])).toEqual([
      'actions/setup-node',
      'actions/download-artifact',
      ...tarballs.map(() => undefined),
    ]);
    expect([publish.needs, publish.environment]).toEqual(['build', 'npm']);
    const release = jobs.find(({ name }) => name === 'publish.yml: release')!.job;
    expect(runsOf(release)).toEqual([
      'gh release create "$GITHUB_REF_NAME" *.cdx.json --verify-tag --notes "See CHANGELOG.md"',
    ]);
    expect(release.steps.map(({ uses }) => uses?.split('@')[0])).toEqual(['actions/download-artifact', undefined]);
  });

  it('publish a tag of main only, whose name is the version', () => {
    const build = runsOf(jobs.find(({ name }) => name === 'publish.yml: build')!.job);
    const [onMain, isVersion, ...later] = build;
    expect(onMain).toBe('git merge-base --is-ancestor HEAD origin/main');
    expect(isVersion).toBe(`test "v$(node -p "require('./package.json').version")" = "$GITHUB_REF_NAME"`);
    expect(later[0]).toBe('npm ci');
  });

  it('run no script where findings are reported', () => {
    const { job } = jobs.find(({ name }) => name === 'codeql.yml: analyze')!;
    expect(runsOf(job)).toEqual([]);
  });

  it('put no text of a pull request or a tag into a script', () => {
    const scripts = jobs.flatMap(({ job }) => runsOf(job));
    expect(scripts.filter((run) => run.includes('${{'))).toEqual([]);
  });
});
