import { createInterface } from 'node:readline';

/** Sends calls for each line of a number and a path, and prints their statuses or errors. */
export async function callLines(call) {
  for await (const line of createInterface({ input: process.stdin })) {
    const [count, path] = line.split(' ');
    const one = () =>
      call(process.env.BASE_URL + path).then(
        ({ status }) => status,
        ({ message }) => message,
      );
    console.log(JSON.stringify(await Promise.all(Array.from({ length: Number(count) }, one))));
  }
}
