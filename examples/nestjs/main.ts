import { createApp } from './app.js';

async function main(): Promise<void> {
  const app = await createApp();
  const port = Number(process.env['PORT'] ?? 3000);
  await app.listen(port, '127.0.0.1');
  console.log(`http://127.0.0.1:${port}`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
