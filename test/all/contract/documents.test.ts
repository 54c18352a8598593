import { createTestIssuer, startTestIssuer } from '../../../src/testing';
import type { HttpTestIssuer } from '../../../src/testing';
import { prepareRequest } from '../../../src/testing/contract/samples';
import { schemaValidators } from '../../../src/testing/contract/schemas';
import { basePathOf, dereference, everyOperation, loadDocument } from '../../../src/testing/openapi/document';
import type { LocatedOperation } from '../../../src/testing/openapi/document';
import { documentApp, VOCABULARIES } from './document-app';
import type { Fault, Vocabulary } from './document-app';
import { directoryDocuments, exampleDocuments, hasCorpus, largeDocuments, runCases } from './documents';
import type { PublicDocument } from './documents';

if (!hasCorpus) console.warn('skipped: the documents of others are not there; npm run corpus');
const SAMPLE = 100;
/** Servers of more operations take minutes: of a large document some paths are served. */
const MAX_OPERATIONS = 20;
const PATHS = 6;

const operationsOf = ({ content }: PublicDocument): readonly LocatedOperation[] => {
  const document = loadDocument(content);
  return everyOperation(document, basePathOf(document));
};
const guardedOf = (document: PublicDocument): readonly LocatedOperation[] =>
  operationsOf(document).filter(({ access }) => access === 'token');

(hasCorpus ? describe : describe.skip)('documents of others', () => {
  it('are read without a crash, and nearly all of their operations get a request that their schemas allow', () => {
    let [count, wrong] = [0, 0];
    for (const document of directoryDocuments(SAMPLE)) {
      const { isValid } = schemaValidators(document.content);
      for (const operation of operationsOf(document)) {
        count += 1;
        try {
          const { body, headers } = prepareRequest(document.content, operation, {});
          const requestBody = dereference(document.content, operation.operation.requestBody) as
            { readonly content?: Readonly<Record<string, { readonly schema?: object }>> } | undefined;
          const type = Object.keys(requestBody?.content ?? {}).find((one) => one === headers['content-type']);
          const { schema } = (type !== undefined && requestBody?.content?.[type]) || {};
          const isJson = schema !== undefined && body !== undefined && type?.includes('json');
          if (isJson && !isValid(schema, JSON.parse(body))) wrong += 1;
        } catch {
          wrong += 1;
        }
      }
    }
    expect(count).toBeGreaterThan(1_500);
    expect(1 - wrong / count).toBeGreaterThanOrEqual(0.995);
  });

  describe('served as they say', () => {
    const local = createTestIssuer();
    let remote: HttpTestIssuer;
    beforeAll(async () => (remote = await startTestIssuer()));
    afterAll(() => remote.close());
    const documents = hasCorpus
      ? [...exampleDocuments(), ...largeDocuments(PATHS)].filter((one) => {
          const { length } = guardedOf(one);
          return length > 0 && length <= MAX_OPERATIONS;
        })
      : [];
    const issuerOf = (vocabulary: Vocabulary) => (vocabulary === 'express-oauth2-jwt-bearer' ? remote : local);

    async function redOf(document: PublicDocument, vocabulary: Vocabulary, mode: 'app' | 'url', fault?: Fault) {
      const issuer = issuerOf(vocabulary);
      const app = documentApp(document.content, issuer, vocabulary, { fault });
      return runCases(app, mode, { openapi: document.content, issuer });
    }

    const byVocabulary = documents.flatMap((one) =>
      VOCABULARIES.map((vocabulary) => [one.name, vocabulary, one] as const),
    );
    it.each(byVocabulary)('have no red case about authorization: %s with %s', async (_name, vocabulary, document) => {
      for (const mode of ['app', 'url'] as const) {
        const { red, report } = await redOf(document, vocabulary, mode);
        expect({ mode, red }).toEqual({ mode, red: [] });
        expect(report.tested).toHaveLength(guardedOf(document).length);
      }
    });

    /** Faults of one document: of each kind, at one operation after the other. */
    function faultsOf(document: PublicDocument): readonly Fault[] {
      const guarded = guardedOf(document).filter(({ path }) => !path.includes('#'));
      const methods = (path: string) => operationsOf(document).filter((one) => one.path === path);
      const nextOf = (index: number): LocatedOperation => guarded[index % guarded.length] as LocatedOperation;
      const withScopes = guarded.find(({ security }) => security.every((scopes) => scopes.length > 0));
      const kinds = ['204', 'a body', '404'] as const;
      return [
        { kind: 'a guard removed', operation: nextOf(0) },
        ...(withScopes ? [{ kind: 'scopes swapped', operation: withScopes } as const] : []),
        ...kinds.flatMap((kind, index): readonly Fault[] => {
          const operation = nextOf(index);
          const free = ['DELETE', 'PUT'].find((one) => !methods(operation.path).some(({ method }) => method === one));
          return free === undefined ? [] : [{ kind, operation, method: free }];
        }),
      ];
    }

    describe.each(['app', 'url'] as const)('with a fault: %s', (mode) => {
      const missed: string[] = [];
      let count = 0;

      it.each(documents.map((one, index) => [one.name, one, index] as const))('%s', async (_name, document, index) => {
        for (const fault of faultsOf(document)) {
          const vocabulary = VOCABULARIES[index % VOCABULARIES.length] as Vocabulary;
          count += 1;
          const { red } = await redOf(document, vocabulary, mode, fault);
          const { kind, operation, method = operation.method } = fault;
          if (red.length === 0) missed.push(`${document.name}, ${vocabulary}: ${kind}, ${method} ${operation.path}`);
        }
      });

      it('have a red case for nearly every one', () => {
        expect(count).toBeGreaterThan(35);
        expect({ missed, share: missed.length / count <= 0.02 }).toEqual({ missed, share: true });
      });
    });
  });
});
