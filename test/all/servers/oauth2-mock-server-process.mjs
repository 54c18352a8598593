import { randomUUID } from 'node:crypto';
import { Events, OAuth2Server } from 'oauth2-mock-server';
import { replyToParent } from './reply-to-parent.mjs';

const server = new OAuth2Server();
await server.issuer.keys.generate('RS256');
await server.start(0, '127.0.0.1');
let generation;

// The hook of docs/issuers.md, but for a token "as made".
server.service.on(Events.BeforeTokenSigning, (token, req) => {
  if (generation === undefined) return;
  const [client] = Buffer.from(req.headers.authorization.slice('Basic '.length), 'base64').toString().split(':');
  token.header.typ = 'at+jwt';
  Object.assign(token.payload, { sub: client, client_id: client, jti: randomUUID(), generation });
});

replyToParent({ issuer: server.issuer.url }, (question) => {
  generation = question.generation;
});
