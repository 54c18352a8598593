import express from 'express';
import request from 'supertest';
import type { Response } from 'supertest';
import { authenticate, problemHandler, requireScope } from '../../../src/gate';
import { authenticateOptions, readSettings } from '../../../src/gate/env';
import type { AuthenticateOptions, Reason } from '../../../src/gate';
import { REASONS } from '../../../src/gate/core/reasons';
import { recordingLogger } from '../../support/log';
import { challengeOf, problemOf } from '../../support/refusals';
import type { RefusalDetails } from '../../support/refusals';

/** Public URL of the API, and the audience of its tokens. */
export const API = 'https://api.test';

/** An Express API as a team of ours would guard it: its responses show what the handler found in `req.auth`. */
export interface GuardedApi {
  /** `/orders` asks for orders:read, `/orders/cancel` for orders:cancel. */
  get(path: string, token?: string): Promise<Response>;
  close(): Promise<void>;
}

/** Opens the API for the tokens of one issuer and waits for its keys. */
export async function guardedApi(issuer: string, options: Partial<AuthenticateOptions> = {}): Promise<GuardedApi> {
  const logger = recordingLogger();
  const settings = readSettings({ TILLGATE_AUTH_URL: issuer, TILLGATE_BASE_URL: API });
  const gate = authenticate({ ...authenticateOptions(settings), logger, ...options } as AuthenticateOptions);
  const app = express();
  app.use(gate);
  app.get('/orders', requireScope('orders:read'), (req, res) => void res.json(req.auth));
  app.get('/orders/cancel', requireScope('orders:cancel'), (req, res) => void res.json(req.auth));
  app.use(problemHandler({ logger }));
  await gate.ready();
  return {
    async get(path, token) {
      const call = request(app).get(path);
      return await (token === undefined ? call : call.set('Authorization', `Bearer ${token}`));
    },
    close: () => gate.close(),
  };
}

/** Asserts status, challenge and body of a refusal, to the byte: by `guardedApi()`, or by the scaffold at the URL `api`. */
export function expectRefused(response: Response, reason: Reason, details: RefusalDetails = {}, api = API): void {
  const resourceMetadata = `${api}/.well-known/oauth-protected-resource`;
  const problem = problemOf(reason, details);
  // The scaffold serves a page per problem.
  const type = api === API ? 'about:blank' : `${api}/problems/${reason}`;
  expect(response.body).toEqual({ ...problem, type, ...(type !== 'about:blank' && { title: REASONS[reason].title }) });
  expect(response.headers['www-authenticate']).toBe(challengeOf(reason, { ...details, resourceMetadata }));
  expect(response.status).toBe((problem as { status: number }).status);
  expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
}
