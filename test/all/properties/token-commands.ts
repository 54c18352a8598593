import { command, keepToken } from './client-commands';
import type { Command } from './client-commands';
import { floorOf, isActive, expectedResponse } from './model';
import type { ClientId, Scope } from './model';

/** How long an API waits at the token server at most. */
const POLL_MS = 5_000;

/** Requests a token with any of the secrets that were issued for the id. */
export function requestToken(id: ClientId, secretAt: number, scopes: readonly string[]): Command {
  return command(`token(${id}, secret ${secretAt}, ${scopes.join('+')})`, async (model, system) => {
    const issued = model.issuedSecrets.get(id) ?? [];
    const secret = issued.at(-1 - (secretAt % (issued.length || 1))) ?? 'none';
    const client = model.clients.get(id);
    const form = { grant_type: 'client_credentials', client_id: id, client_secret: secret, scope: scopes.join(' ') };
    const { status, body } = await system.ask({ method: 'POST', path: '/connect/token', form, bearer: undefined });
    if (!client || client.disabled || !client.secrets.includes(secret)) {
      return expect([status, body['error']]).toEqual([401, 'invalid_client']);
    }
    if (!scopes.every((scope) => client.scopes.includes(scope))) {
      return expect([status, body['error']]).toEqual([400, 'invalid_scope']);
    }
    expect(status).toBe(200);
    const token = keepToken(model, String(body['access_token']));
    expect(new Set(token.scopes)).toEqual(new Set(scopes));
  });
}

/** Calls the APIs with a token; the one without a source learns from the tokens it has seen. */
export function call(tokenAt: number, scope: Scope): Command {
  return command(`call(token ${tokenAt}, ${scope})`, async (model, system) => {
    const token = model.tokens.at(-1 - (tokenAt % (model.tokens.length || 1)));
    if (!token) return;
    const { clientId, generation, text } = token;
    const following = expectedResponse(model, token, scope, floorOf(model, clientId));
    expect(`following: ${await system.call('following', scope, text)}`).toBe(`following: ${following}`);

    // Before a response that is on its way its floors may be stale, but it refuses no valid token.
    const polling = await system.call('polling', scope, text);
    if (polling !== following)
      expect([following, polling]).toEqual(['401 superseded', expectedResponse(model, token, scope, 0)]);

    const learning = expectedResponse(model, token, scope, model.learned.get(clientId) ?? 0);
    expect(`learning: ${await system.call('learning', scope, text)}`).toBe(`learning: ${learning}`);
    // A token that passed every other check proves that the change of its generation was committed.
    if (!learning.startsWith('401')) model.learned.set(clientId, generation);
  });
}

/** Introspects a token, as a client that is allowed to. */
export function introspect(tokenAt: number): Command {
  return command(`introspect(token ${tokenAt})`, async (model, system) => {
    const token = model.tokens.at(-1 - (tokenAt % (model.tokens.length || 1)));
    const [asking] = [...model.clients].filter(([, client]) => !client.disabled);
    if (!token || !asking) return;
    const [id, { secrets }] = asking;
    const form = { client_id: id, client_secret: secrets[0] ?? '', token: token.text };
    const { status, body } = await system.ask({ method: 'POST', path: '/connect/introspect', form, bearer: undefined });
    expect([status, body['active']]).toEqual([200, isActive(model, token)]);
  });
}

export function restartServer(emptySource: boolean): Command {
  return command(`restart server${emptySource ? ', floors lost' : ''}`, async (model, system) => {
    await system.restartServer({ emptySource });
    if (emptySource) model.learned.clear();
  });
}

export function restartApis(): Command {
  return command('restart APIs', async (model, system) => {
    await system.restartApis();
    model.learned.clear();
  });
}

export function passTime(ms: number): Command {
  return command(`pass(${ms} ms)`, async (model, system) => {
    await system.pass(ms);
    model.nowMs += ms;
    if (ms < POLL_MS) return;
    for (const token of model.tokens.slice(-4)) {
      const expected = expectedResponse(model, token, 'orders:read', floorOf(model, token.clientId));
      expect(`polling: ${await system.call('polling', 'orders:read', token.text)}`).toBe(`polling: ${expected}`);
    }
  });
}

/** Sets the clock of the token server forwards or backwards, within the tolerance. */
export function setClock(aheadMs: number): Command {
  return command(`clock(${aheadMs} ms ahead)`, async (model, system) => {
    system.setAhead(aheadMs);
    model.aheadMs = aheadMs;
    await system.rest();
  });
}
