// Whether the version in package.json fits what has changed since the last release: `npm run release:check`, or
// `-- --since <git revision>`. What was removed from the public surface needs a major version, before 1.0 a minor one;
// what was added needs a minor one. Exit code 1 when the version is too low, or CHANGELOG.md does not have it.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

/** What CHANGELOG.md calls public, and how its parts are found in the files that list them. */
const SURFACE = [
  [/^api\/.*\.api\.md$/, /^(?! *\/\/|#|>|```|import ).*\S.*$/gm],
  [/^docs\/configuration\.md$/, /`TILLGATE_\w+`/g],
  [/^docs\/reasons\.md$/, /^#+ .*$/gm],
  [/^docs\/scaffold\.md$/, /^\| `[a-z][^|]*`|`--[a-z-]+`/gm],
];

const { values } = parseArgs({ options: { since: { type: 'string' } } });
const since = values.since ?? lastTag();
if (since === undefined) {
  console.log('no tag v* before this commit: the first release may have any version');
  process.exit();
}
const [before, now] = [
  versionOf(git('show', `${since}:package.json`)),
  versionOf(readFileSync('package.json', 'utf8')),
];
const { removed, added } = difference(partsAt(since), partsAt());
print('removed or changed', removed);
print('added', added);
const needed = removed.length > 0 && before[0] > 0 ? 0 : removed.length + added.length > 0 ? 1 : 2;
const lowest = before.map((part, index) => (index === needed ? part + 1 : index > needed ? 0 : part));
const problems = [];
if (compare(now, lowest) < 0) {
  problems.push(
    `package.json has ${now.join('.')}, and what changed since ${since} needs at least ${lowest.join('.')}`,
  );
}
if (!readFileSync('CHANGELOG.md', 'utf8').includes(`\n## ${now.join('.')}`)) {
  problems.push(`CHANGELOG.md has no heading "## ${now.join('.')}"`);
}
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
else console.log(`${now.join('.')} fits: ${removed.length} removed or changed, ${added.length} added since ${since}`);

function git(...args) {
  return execFileSync('git', args, {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function lastTag() {
  try {
    return git('describe', '--tags', '--abbrev=0', '--match', 'v*', 'HEAD^').trim();
  } catch {
    return undefined;
  }
}

function versionOf(text) {
  return JSON.parse(text).version.split('-')[0].split('.').map(Number);
}

function compare(one, other) {
  const index = one.findIndex((part, at) => part !== other[at]);
  return index < 0 ? 0 : one[index] - other[index];
}

/** Each part with its file, as often as it occurs; of the working tree without a revision. */
function partsAt(revision) {
  const files = git(...(revision ? ['ls-tree', '-r', '--name-only', revision] : ['ls-files'])).split('\n');
  return files.flatMap((file) =>
    SURFACE.filter(([name]) => name.test(file)).flatMap(([, part]) => {
      const text = revision ? git('show', `${revision}:${file}`) : readFileSync(file, 'utf8');
      return [...new Set(text.match(part))].map((found) => `${file}: ${found.trim()}`);
    }),
  );
}

function difference(earlier, later) {
  const [had, has] = [new Set(earlier), new Set(later)];
  return { removed: earlier.filter((part) => !has.has(part)), added: later.filter((part) => !had.has(part)) };
}

function print(heading, parts) {
  if (parts.length > 0) console.log(`${heading}:\n${parts.map((part) => `  ${part}`).join('\n')}\n`);
}
