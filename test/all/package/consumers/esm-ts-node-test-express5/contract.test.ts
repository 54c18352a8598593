import { test } from 'node:test';
import { contractCases, createTestIssuer } from '@tillgate/testing';
import { createApp } from './app.js';

const issuer = createTestIssuer();
const app = createApp(issuer.options);

for (const { name, run } of contractCases({ app, openapi: 'openapi.yaml', issuer })) test(name, run);
