import { requirePackages } from '../../core/required-packages';
import type { LocatedOperation } from '../../openapi/document';
import type { answerSchemas, Validate } from './answer-schemas';
import type { Answer } from './client';
import type { Deviation } from './deviation';
import { covers, isJson, mediaTypeOf } from './media-type';
import { goTo, isRecord } from './reference';

/** What the document says about the answers of one operation. */
export interface DocumentedAnswers {
  /** As the document writes them: `200`, `4XX`, `default`. */
  readonly statuses: readonly string[];
  /** The one of them that a status falls under. */
  entryOf(status: number): string | undefined;
  /** What of an answer is not as documented: status, content type, body. */
  compare(answer: Answer): readonly Deviation[];
}

/** Reads what a document says about answers; schemas are compiled when the first answer needs them. */
export function documentedAnswers(
  document: object,
  basePath: string,
): (operation: LocatedOperation) => DocumentedAnswers {
  let validatorOf: ((names: readonly string[]) => Validate) | undefined;

  function schema(names: readonly string[]): Validate {
    // Optional peers, loaded when the first body is compared with a schema.
    requirePackages('contractCases()', ['ajv', 'ajv-formats']);
    // eslint-disable-next-line @typescript-eslint/no-require-imports
    const load = (): { answerSchemas: typeof answerSchemas } => require('./answer-schemas') as never;
    validatorOf ??= load().answerSchemas(document);
    return validatorOf(names);
  }

  return function answersOf({ method, path }) {
    const responses = goTo(document, ['paths', path.slice(basePath.length), method.toLowerCase(), 'responses']);
    const statuses = isRecord(responses.value) ? Object.keys(responses.value) : [];

    function entryOf(status: number): string | undefined {
      const fitting = [String(status), `${String(status).slice(0, 1)}XX`, 'default'];
      return fitting.find((entry) => statuses.includes(entry));
    }

    function compare(answer: Answer): readonly Deviation[] {
      const entry = entryOf(answer.status);
      if (entry === undefined) {
        return [{ what: 'documented status', got: answer.status, expected: statuses.join(', ') }];
      }
      const content = goTo(document, [...responses.names, entry, 'content']);
      return method === 'HEAD' ? [] : compareBody(content, answer);
    }

    return { statuses, entryOf, compare };
  };

  function compareBody({ names, value }: ReturnType<typeof goTo>, answer: Answer): readonly Deviation[] {
    const types = isRecord(value) ? Object.keys(value) : [];
    if (types.length === 0) {
      const got = answer.text === '' ? 'no body' : 'a body';
      return answer.text === '' ? [] : [{ what: `body of a ${answer.status}`, got, expected: 'no body' }];
    }
    const got = mediaTypeOf(String(answer.headers['content-type'] ?? 'none'));
    const type = types.find((one) => covers(one, got));
    if (type === undefined) return [{ what: 'documented content type', got, expected: types.join(', ') }];
    const media = goTo(document, [...names, type]);
    if (!isRecord(media.value) || !('schema' in media.value) || answer.body === undefined) {
      const isUnreadable = isJson(got) && answer.body === undefined;
      return isUnreadable ? [{ what: 'body', got: 'no JSON', expected: 'JSON' }] : [];
    }
    const wrong = schema([...media.names, 'schema'])(answer.body);
    return wrong === undefined ? [] : [{ what: `body of a ${answer.status}`, got: wrong, expected: 'its schema' }];
  }
}
