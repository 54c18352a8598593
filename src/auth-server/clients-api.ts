import { Router } from 'express';
import type { Request, Response } from 'express';
import { readNewClient, readPatch, readRotation } from './client-input';
import type { KnownScopes } from './client-input';
import { toResource } from './client-resource';
import { preconditionOf, setEtag } from './etag';
import { jsonBody } from './json-body';
import { serve } from './methods';
import type { Patched, Registry } from './registry';
import type { ClientRow } from './state';
import type { TokenAnswer, Tokens } from './tokens';

/** What the registration API works on. */
export interface ClientsApiOptions {
  readonly registry: Registry;
  readonly tokens: Tokens;
  readonly knownScopes: KnownScopes;
}

/** Makes the API under `/clients`. */
export function clientsApi({ registry, tokens, knownScopes }: ClientsApiOptions): Router {
  const router = Router();
  router.use(jsonBody());

  serve(router, '/', {
    get: function listClients(_req, res) {
      res.json({ clients: registry.list().map(toResource) });
    },
    post: async function registerClient(req, res) {
      const { row, secret } = await registry.register(readNewClient(req.body, knownScopes));
      res.location(`${req.baseUrl}/${encodeURIComponent(row.clientId)}`);
      answer(res, 201, row, { client_secret: secret });
    },
  });

  serve(router, '/:clientId', {
    get: function showClient(req, res) {
      answer(res, 200, registry.get(clientIdOf(req)));
    },
    patch: async function changeClient(req, res) {
      const change = await registry.patch(clientIdOf(req), readPatch(req.body, knownScopes), preconditionOf(req));
      const token = successorToken(change, tokens);
      answer(res, 200, change.after, token && { token });
    },
    delete: async function removeClient(req, res) {
      await registry.remove(clientIdOf(req), preconditionOf(req));
      tokens.forget(clientIdOf(req));
      res.status(204).end();
    },
  });

  serve(router, '/:clientId/secrets', {
    post: async function rotateSecret(req, res) {
      const { row, secret } = await registry.rotate(clientIdOf(req), readRotation(req.body), preconditionOf(req));
      answer(res, 201, row, { client_secret: secret });
    },
  });

  serve(router, '/:clientId/revoke', {
    post: async function revokeTokens(req, res) {
      answer(res, 200, await registry.revoke(clientIdOf(req), preconditionOf(req)));
    },
  });

  return router;
}

/**
 * When the Description of a client credential changes, the tokens issued before are discarded and a new token is
 * created: with the scopes of the last one, as far as they are still registered. A disabled client gets none.
 */
function successorToken({ before, after }: Patched, tokens: Tokens): TokenAnswer | undefined {
  if (after.description === before.description || after.disabled) return undefined;
  const kept = tokens.lastGranted(after.clientId)?.filter((scope) => after.scopes.includes(scope)) ?? [];
  return tokens.issue(after, kept.length > 0 ? kept : after.scopes);
}

function answer(res: Response, status: number, row: ClientRow, more: object = {}): void {
  setEtag(res, row);
  res.status(status).json({ ...toResource(row), ...more });
}

function clientIdOf(req: Request): string {
  return req.params['clientId'] as string;
}
