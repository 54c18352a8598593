import { createApp } from './app.js';

const port = Number(process.env.PORT ?? process.env.TILLGATE_PORT ?? 3000);
const server = createApp().listen(port, '127.0.0.1');
server.on('listening', () => console.log(`http://127.0.0.1:${server.address().port}`));
server.on('error', (error) => {
  console.error(`cannot listen on port ${port}: ${error.message}; set PORT to a free one`);
  process.exit(1);
});
