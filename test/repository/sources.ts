import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** The TypeScript files below a folder, except for what is built and installed. */
export function listFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return ['dist', 'node_modules'].includes(entry.name) ? [] : listFiles(path);
    return entry.name.endsWith('.ts') ? [path] : [];
  });
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
