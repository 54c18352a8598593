import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { nodesOf } from '../../../repository/sources';

const ROOT = join(__dirname, '../../../..');
/** Where advice for operators is written: about tokens, about requests without one, the order of an app, clocks and connections. */
const SOURCES = [
  'express/diagnosis/advice.ts',
  'express/diagnosis/no-token.ts',
  'express/recorder.ts',
  'express/unguarded.ts',
  'core/clock.ts',
  'net/unreachable.ts',
];
/** Shorter ones join others: "the token has no". */
const MIN_WORDS = 5;
/** Never printed: it is caught. */
const INTERNAL = ['no guard allowed this response'];

const PAGE = readFileSync(join(ROOT, 'docs/maintainers/messages.md'), 'utf8').replace(/\s+/g, ' ');

it.each(SOURCES)('each text of %s has its row in docs/maintainers/messages.md', (file) => {
  const path = join(ROOT, 'src/gate', file);
  const texts = textsIn(ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest));
  const sentences = texts.map((text) => text.trim()).filter((text) => text.split(' ').length >= MIN_WORDS);
  expect(sentences.length).toBeGreaterThan(0);
  expect(sentences.filter((text) => !INTERNAL.includes(text) && !PAGE.includes(text))).toEqual([]);
});

/** The strings of a file, and the parts of its templates between two values. */
function textsIn(source: ts.SourceFile): readonly string[] {
  return nodesOf(source).flatMap((node) => {
    const isText = ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);
    return isText ? [node.text] : [];
  });
}
