import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '../..');

/** Phrases that a reader has to translate, and what to write. Phrases, not words: "address" is right for an IP. */
const PHRASES: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/\b(is|are|was|were) no (string|object|number|array|function|integer|boolean|JWT|URL|part of)\b/, 'is not a ...'],
  [/\bnpx tillgate\b/, 'npx @tillgate/cli: the package tillgate has no command'],
  [/\bheld against\b/, 'compared with, checked against'],
  [/\blets? (it|them|him) pass\b/, 'accepts, allows'],
  [/\b(to be had|at hand)\b/, 'is available, is cached'],
  [/\bsays? nothing of (it|them)sel(f|ves)\b/, 'exposes no detail'],
  [/\b(takes?|took) (no )?part\b/, 'responds'],
  [/\bthe word to\b/, 'signal'],
  [/\bsurroundings\b/, 'dependencies'],
  [/\bstands? (behind|before|in for)\b/, 'runs after, runs before, replaces'],
  [/\b(owes|owed|owing)\b/, 'is pending, to flush'],
  [/\ball the same\b/, 'anyway, or nothing'],
  [/\bfor so long\b/, 'how long ...'],
  [/\basks nobody\b/, 'has no gate'],
  [
    /\blet the (issuer|server|authorization server|client) (add|ask|issue|make|repair|return|shorten|sign)\b/i,
    'have the ... add',
  ],
  [/\baccess tokens of RFC\b/, 'access tokens by RFC'],
  [/\bhave what (it|they) (has|have) not\b/, 'name it'],
  [/, the (app|document|other) has not;/, 'does not'],
  [/\bWhat you have then:/, 'After the migration:'],
  [/\b(goes on|go on) (trying|deciding)\b/, 'keeps trying'],
];

/** Quotes messages as they were, next to what they are now. */
const QUOTES = 'docs/maintainers/messages.md';
const FOLDERS = ['src', 'docs', 'examples', 'deploy'];
const PAGES = ['README.md', 'CHANGELOG.md', 'UPGRADE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'openapi.yaml'];

function textsIn(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|js|mjs|cjs|md|yaml|html)$/.test(name) && !/(^|\/)(node_modules|dist)\//.test(name))
    .map((name) => `${folder}/${name}`)
    .filter((path) => path !== QUOTES && statSync(join(ROOT, path)).isFile());
}

it('comments, messages and pages say things the way that readers of the RFCs say them', () => {
  const found = [...PAGES, ...FOLDERS.flatMap(textsIn)].flatMap((path) => {
    // A phrase may go over the end of a line of a comment.
    const text = readFileSync(join(ROOT, path), 'utf8').replace(/\n\s*(\*|\/\/|#)? ?/g, ' ');
    return PHRASES.flatMap(([phrase, instead]) => {
      const [match] = phrase.exec(text) ?? [];
      return match === undefined ? [] : [`${path}: "${match}"; write: ${instead}`];
    });
  });
  expect(found).toEqual([]);
});
