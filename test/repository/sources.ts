import { readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import ts from 'typescript';

/** The files below a folder with one of the extensions, TypeScript by default, except for what is built and installed. */
export function listFiles(folder: string, extensions: readonly string[] = ['.ts']): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return ['dist', 'node_modules'].includes(entry.name) ? [] : listFiles(path, extensions);
    return extensions.includes(extname(entry.name)) ? [path] : [];
  });
}

/** The lines with a token of the compiler on them: neither comments nor blank lines, in a text of several lines either. */
export function countCodeLines(text: string): number {
  const source = ts.createSourceFile('file.ts', text, ts.ScriptTarget.Latest);
  const lines = text.split('\n');
  const found = new Set<number>();
  const lineOf = (position: number): number => source.getLineAndCharacterOfPosition(position).line;
  const visit = (node: ts.Node): void => {
    const children = node.getChildren(source).filter((child) => !ts.isJSDoc(child));
    children.forEach(visit);
    if (children.length > 0 || node.getWidth(source) === 0) return;
    for (let line = lineOf(node.getStart(source)); line <= lineOf(node.getEnd()); line += 1) {
      if (lines[line]?.trim()) found.add(line);
    }
  };
  visit(source);
  return found.size;
}

/** A node and all that are within it. */
export function nodesOf(node: ts.Node): ts.Node[] {
  const found: ts.Node[] = [];
  const visit = (each: ts.Node): void => {
    found.push(each);
    ts.forEachChild(each, visit);
  };
  visit(node);
  return found;
}
