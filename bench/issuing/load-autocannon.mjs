/** Posts one form after the other from a file that holds one a line: `node load-autocannon.mjs <url> <file> <seconds>`. */
import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';

const [url, file, seconds] = process.argv.slice(2);
const headers = { 'content-type': 'application/x-www-form-urlencoded' };
const forms = readFileSync(file, 'utf8').trimEnd().split('\n');
const requests = forms.map((body) => ({ method: 'POST', headers, body }));

const result = await autocannon({ url, connections: 32, duration: Number(seconds), requests });
console.log(
  JSON.stringify({
    answered: result['2xx'] + result.non2xx,
    seconds: result.duration,
    refused: result.non2xx,
    failed: result.errors + result.timeouts,
  }),
);
