const { test } = require('node:test');
const { contractCases, createTestIssuer } = require('@tillgate/testing');
const { createApp } = require('./app');

const issuer = createTestIssuer();
const app = createApp(issuer.options);

for (const { name, run } of contractCases({ app, openapi: 'openapi.yaml', issuer })) test(name, run);
