// Jobs that do nothing, claimed and completed by BullMQ's own workers; prints how many seconds that took.
//
// Arguments: address of Redis, first part of the keys, jobs, threads, jobs under way in each. The threads run this text as well.
'use strict';
const { Worker: Thread, isMainThread, parentPort, workerData } = require('node:worker_threads');
const { Queue, Worker } = require('bullmq');

const QUEUE = 'bench';
const ADDED_TOGETHER = 1000;

function connectionTo(address) {
  const { hostname, port, username, password } = new URL(address);
  return {
    host: hostname,
    port: Number(port || 6379),
    username: username || undefined,
    password: password || undefined,
    maxRetriesPerRequest: null,
  };
}

async function thread() {
  const { address, prefix, concurrency, jobs, completed } = workerData;
  const count = new Int32Array(completed);
  const worker = new Worker(QUEUE, async () => undefined, {
    connection: connectionTo(address),
    prefix,
    concurrency,
    autorun: false,
    skipLockRenewal: true,
    skipStalledCheck: true,
    lockDuration: 600000,
  });
  worker.on('completed', () => {
    if (Atomics.add(count, 0, 1) + 1 === jobs) parentPort.postMessage('all');
  });
  worker.on('error', (error) => { throw error; });
  await worker.waitUntilReady();
  parentPort.on('message', async (word) => {
    if (word === 'go') return void worker.run();
    await worker.close();
    process.exit(0);
  });
  parentPort.postMessage('ready');
}

function heardFrom(threads, word, times) {
  return new Promise((resolve, reject) => {
    let left = times;
    for (const one of threads) {
      one.on('message', (said) => { if (said === word && --left === 0) resolve(); });
      one.on('error', reject);
    }
  });
}

async function main([address, prefix, jobsText, threadsText, concurrencyText]) {
  const jobs = Number(jobsText);
  const queue = new Queue(QUEUE, { connection: connectionTo(address), prefix });
  for (let first = 0; first < jobs; first += ADDED_TOGETHER) {
    const part = Array.from({ length: Math.min(ADDED_TOGETHER, jobs - first) }, (_, at) => ({
      name: 'due',
      data: { id: `due-${first + at}` },
      opts: { removeOnComplete: true, removeOnFail: true },
    }));
    await queue.addBulk(part);
  }
  const completed = new SharedArrayBuffer(4);
  const data = { address, prefix, jobs, concurrency: Number(concurrencyText), completed };
  const threads = Array.from({ length: Number(threadsText) }, () =>
    new Thread(process.env.ONCEWARD_BENCH_TEXT, { eval: true, workerData: data }));
  await heardFrom(threads, 'ready', threads.length);
  const all = heardFrom(threads, 'all', 1);
  const started = process.hrtime.bigint();
  threads.forEach((one) => one.postMessage('go'));
  await all;
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  threads.forEach((one) => one.postMessage('end'));
  await queue.obliterate({ force: true });
  await queue.close();
  process.stdout.write(`${seconds}\n`);
}

if (isMainThread) {
  main(process.argv.slice(1)).catch((error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  });
} else {
  thread();
}
