import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadDocument } from '../../../src/testing/openapi/document';
import { FIELDS } from './fields';

const SRC = join(__dirname, '../../../src/testing');
const sources = ['openapi', 'contract']
  .flatMap((folder) => readdirSync(join(SRC, folder)).map((file) => readFileSync(join(SRC, folder, file), 'utf8')))
  .join('\n');
const page = readFileSync(join(__dirname, '../../../docs/decisions/0007-openapi-libraries.md'), 'utf8');

/** Names that a document chooses, and containers that references lead through. */
const BY_REFERENCE = ['status code', 'name of a scheme', ...Object.keys(FIELDS['Components'] ?? {}), '$defs'];

const rows = Object.entries(FIELDS).flatMap(([object, fields]) =>
  Object.entries(fields).map(([field, treatment]) => [object, field, treatment] as const),
);

describe('a field of an OpenAPI document', () => {
  it.each(rows.filter(([, field, treatment]) => treatment === 'used' && !BY_REFERENCE.includes(field)))(
    '%s.%s is read by the kit',
    (_object, field) => {
      expect(sources).toMatch(new RegExp(`(?<![\\w$])${field.replace('$', '\\$')}(?![\\w$])`));
    },
  );

  it.each(rows.filter(([, , treatment]) => treatment === 'refused'))('%s.%s is refused by name', (_object, field) => {
    expect(() => loadDocument({ [field]: '2.0', paths: {} })).toThrow(/Swagger 2/);
  });

  it('has a reason wherever it has no bearing on authorization', () => {
    const reasons = rows.filter(([, , treatment]) => treatment.startsWith('no bearing'));
    expect(reasons.length).toBeGreaterThan(40);
    expect(reasons.filter(([, , treatment]) => treatment.length < 'no bearing: '.length + 10)).toEqual([]);
  });

  it('is counted in the decision about reading documents', () => {
    const count = (start: string) => rows.filter(([, , treatment]) => treatment.startsWith(start)).length;
    expect(page).toContain(`${rows.length} fields: ${count('used')} used, ${count('no bearing')} without bearing`);
  });
});
