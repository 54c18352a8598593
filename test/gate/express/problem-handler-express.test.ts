import express from 'express';
import type { RequestHandler } from 'express';
import request from 'supertest';
import { problemHandler } from '../../../src/gate';
import { recordingLogger } from '../../support/log';

/* problemHandler() beside Express's own handler, which finalhandler makes. */

const failing = (members: object): RequestHandler => {
  return (_req, _res, next) => next(Object.assign(new Error('till is closed'), members));
};
const CASES: readonly [string, RequestHandler][] = [
  ['status', failing({ status: 404 })],
  ['statusCode alone', failing({ statusCode: 409 })],
  ['a status that is none, and statusCode', failing({ status: 200, statusCode: 410 })],
  ['the status of the response', (_req, res, next) => next(new Error(String(res.status(404).statusCode)))],
  ['the status of a response that is none', (_req, res, next) => next(new Error(String(res.status(201).statusCode)))],
  ['headers', failing({ status: 429, headers: { 'Retry-After': '7', Allow: 'GET' } })],
  ['headers of a 5xx', failing({ status: 503, headers: { 'Retry-After': '7' } })],
  ['headers without a status', failing({ headers: { 'Retry-After': '7' } })],
  ['a text', (_req, _res, next) => next('text')],
];

it.each(CASES)('keeps what Express keeps: %s', async (_what, handler) => {
  const of = (own: boolean) => {
    const app = express().set('env', 'test').get('/', handler);
    return request(own ? app.use(problemHandler({ logger: recordingLogger() })) : app).get('/');
  };
  const [mine, theirs] = [await of(true), await of(false)];
  const shown = ({ status, headers }: request.Response) => [status, headers['retry-after'], headers['allow']];
  expect(shown(mine)).toEqual(shown(theirs));
  expect(mine.headers['content-type']).toBe('application/problem+json; charset=utf-8');
});

it.each([
  [{ status: 409, expose: true }, 'till is closed'],
  [{ status: 503, expose: true }, 'till is closed'],
  [{ status: 409, expose: false }, 'The request was refused.'],
  [{ status: 503 }, 'The request could not be processed.'],
  [{ status: 400, expose: true, type: 'entity.parse.failed' }, expect.stringContaining('could not be read')],
])('shows the message where the error exposes it: %j', async (members, detail) => {
  const app = express()
    .get('/', failing(members))
    .use(problemHandler({ logger: recordingLogger() }));
  expect((await request(app).get('/')).body).toMatchObject({ detail });
});

it('removes the headers of the body that failed', async () => {
  const handler: RequestHandler = (_req, res, next) => {
    res.set({
      'Content-Encoding': 'gzip',
      'Content-Language': 'de',
      'Content-Range': 'bytes 0-1/2',
      ETag: '"x"',
      'X-A': 'b',
    });
    next(Object.assign(new Error('x'), { status: 500, headers: { 'Content-Encoding': 'gzip' } }));
  };
  const app = express()
    .get('/', handler)
    .use(problemHandler({ logger: recordingLogger() }));
  const { headers, body } = await request(app).get('/').expect(500);
  const described = ['content-encoding', 'content-language', 'content-range', 'etag'].map(
    (name) => headers[name] as unknown,
  );
  expect([described, headers['x-a'], body]).toEqual([
    Array(4).fill(undefined),
    'b',
    expect.objectContaining({ status: 500 }),
  ]);
});
