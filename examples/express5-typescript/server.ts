import { createApp } from './app.js';

const port = Number(process.env['PORT'] ?? 3000);
const server = createApp().listen(port, '127.0.0.1', (error) => {
  if (!error) return console.log(`http://127.0.0.1:${port}`);
  console.error(`cannot listen on port ${port}: ${error.message}; set PORT to a free one`);
  process.exitCode = 1;
});

// Open requests finish; idle connections close.
process.once('SIGTERM', () => server.close());
