import { createApp } from './app.js';

const issuer = process.env['TILLGATE_AUTH_URL'] ?? 'http://127.0.0.1:4000';
const resource = process.env['TILLGATE_AUDIENCE'] ?? 'http://127.0.0.1:3000/mcp';
const generationSource = process.env['TILLGATE_GENERATIONS'];
const port = Number(process.env['PORT'] ?? 3000);

const app = createApp({ issuer, audience: resource, resource, generationSource });
const server = app.listen(port, '127.0.0.1', (error) => {
  if (!error) return console.log(`${resource}, with tokens of ${issuer}`);
  console.error(`cannot listen on port ${port}: ${error.message}; set PORT to a free one`);
  process.exitCode = 1;
});

// Open requests finish; idle connections close.
process.once('SIGTERM', () => server.close());
