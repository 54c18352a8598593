import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { contractCases, createTestIssuer } from '../../../src/testing';
import { documentedResponses } from '../../../src/testing/contract/responses';
import { propertiesOf } from '../../../src/testing/contract/sampler';
import { prepareRequest } from '../../../src/testing/contract/samples';
import { basePathOf, declaredScopes, everyOperation, loadDocument } from '../../../src/testing/openapi/document';
import { DOCUMENT, EFFECTS } from './field-effects';
import type { Part } from './field-effects';
import { FIELDS } from './fields';

const page = readFileSync(join(__dirname, '../../../docs/decisions/0007-openapi-libraries.md'), 'utf8');

const rows = Object.entries(FIELDS).flatMap(([object, fields]) =>
  Object.entries(fields).map(([field, treatment]) => [`${object}.${field}`, treatment] as const),
);
const used = rows.filter(([, treatment]) => treatment === 'used').map(([name]) => name);

type Json = Record<string, unknown>;
const issuer = createTestIssuer();
const BODIES: readonly unknown[] = [{ a: 'x' }, { b: 1 }, {}, [], [1], 'x', 1, null];

/** Sets or removes a member at a path of names, `A` for the path of the operation. */
function setAt(document: object, path: string, value: unknown): void {
  const names = path.split(' ');
  const last = names.pop() as string;
  const holder = names.reduce<Json>((at, name) => (at[name] ??= {}) as Json, document as Json);
  if (value === undefined) delete holder[last];
  else holder[last] = structuredClone(value);
}

function documentOf(changes: Readonly<Record<string, unknown>>): object {
  const made = structuredClone(DOCUMENT) as unknown as { paths: Json };
  for (const [path, value] of Object.entries(changes)) setAt(made, path, value);
  const { A, B } = made.paths;
  return { ...made, paths: { ...(A !== undefined && { '/a/{id}': A }), ...(B !== undefined && { '/b': B }) } };
}

/** One part of what the kit makes of a document, as text. */
function partOf(part: Part, source: object): string {
  const document = loadDocument(source);
  const base = basePathOf(document);
  const operations = everyOperation(document, base);
  const [first] = operations.filter(({ method }) => method === 'POST');
  const made = (): unknown => {
    if (part === 'base') return base;
    if (part === 'scopes') return declaredScopes(document);
    if (part === 'operations')
      return operations.map(({ method, path, access, security, alsoNeeds }) => [
        method,
        path,
        access,
        security,
        alsoNeeds,
      ]);
    if (part === 'names')
      return (
        contractCases({ url: 'http://127.0.0.1:1', openapi: source, issuer, requests: { sampled: {} } }).length > 0
      );
    if (!first) return 'no operation';
    if (part === 'leaks') {
      const shown = Object.entries(propertiesOf(document, first.operation.responses?.['200']));
      return shown.filter(([, { writeOnly }]) => writeOnly === true).map(([name]) => name);
    }
    if (part === 'request') return prepareRequest(document, first, {});
    const documented = documentedResponses(document, base)(first);
    const headers = { 'content-type': 'application/json' };
    return [
      documented.statuses,
      BODIES.map((body) => documented.compare({ status: 200, headers, text: '', body, localPort: undefined })),
    ];
  };
  try {
    return JSON.stringify(made()) ?? 'nothing';
  } catch (error) {
    return (error as Error).message;
  }
}

describe('a field of an OpenAPI document', () => {
  it.each(Object.entries(EFFECTS))('%s changes what the kit does', (_name, [part, path, value, first = {}]) => {
    expect(partOf(part, documentOf({ ...first, [path]: value }))).not.toBe(partOf(part, documentOf(first)));
  });

  it('is shown to be used wherever the table says so', () => {
    expect(Object.keys(EFFECTS).sort()).toEqual([...used].sort());
  });

  it('is refused by name where a converter is needed', () => {
    expect(rows.filter(([, treatment]) => treatment === 'refused').map(([name]) => name)).toEqual(['OpenAPI.swagger']);
    expect(() => loadDocument({ swagger: '2.0', paths: {} })).toThrow(/Swagger 2/);
  });

  it('has a reason wherever it has no bearing on authorization', () => {
    const reasons = rows.filter(([, treatment]) => treatment.startsWith('no bearing'));
    expect(reasons.length).toBeGreaterThan(40);
    expect(reasons.filter(([, treatment]) => treatment.length < 'no bearing: '.length + 10)).toEqual([]);
  });

  it('is counted in the decision about reading documents', () => {
    const count = (start: string) => rows.filter(([, treatment]) => treatment.startsWith(start)).length;
    expect(page).toContain(`${rows.length} fields: ${count('used')} used, ${count('no bearing')} without bearing`);
  });
});
