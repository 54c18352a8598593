/**
 * The script's half of `script.ts`: says that it is ready, then replies to each question of the process
 * that started it, and ends with it.
 */
export function replyToParent(ready, reply) {
  process.on('message', async ({ id, question }) => {
    try {
      process.send({ id, reply: await reply(question) });
    } catch (error) {
      process.send({ id, error: error.stack });
    }
  });
  process.on('disconnect', () => process.exit());
  process.send({ ready });
}
