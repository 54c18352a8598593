/**
 * The script's half of `script.ts`: says that it is ready, then answers one message for each question of the process
 * that started it, and ends with it.
 */
export function answerParent(ready, answer) {
  process.on('message', async ({ id, question }) => {
    try {
      process.send({ id, answer: await answer(question) });
    } catch (error) {
      process.send({ id, error: error.stack });
    }
  });
  process.on('disconnect', () => process.exit());
  process.send({ ready });
}
