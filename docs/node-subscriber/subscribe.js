// Of each job: median and 90 % quantile of its run time, and the probability that it ends within its request.
// node subscribe.js ASYNCAPI.json [GROUP]
import { readFileSync } from 'node:fs'
import { Kafka, logLevel } from 'kafkajs'

const [file, group = 'example'] = process.argv.slice(2)
const edges = JSON.parse(readFileSync(file)).components.schemas.RunTimeBinEdges.const

// Within a bin the logarithm of the run time is uniform; bin 0 counts as one second.
function quantile(histogram, share) {
  let left = share * histogram.reduce((sum, mass) => sum + mass)
  for (const [i, mass] of histogram.entries()) {
    if (mass > 0 && left <= mass) return i === 0 ? 1 : edges[i] * (edges[i + 1] / edges[i]) ** (left / mass)
    left -= mass
  }
  return edges[histogram.length]
}

function within(histogram, time) {
  const total = histogram.reduce((sum, mass) => sum + mass)
  return histogram.reduce((sum, mass, i) => {
    if (time >= edges[i + 1]) return sum + mass
    return time > edges[i] && i > 0 ? sum + mass * Math.log(time / edges[i]) / Math.log(edges[i + 1] / edges[i]) : sum
  }, 0) / total
}

function parsed(message) {
  try { return JSON.parse(message.value) } catch { return null } // the stages bury what is no envelope, and go on
}

const set = name => process.env[`SHADOWTIME_KAFKA_${name}`]
const secret = set('PASSWORD') ?? (set('PASSWORD_FILE') && readFileSync(set('PASSWORD_FILE'), 'utf8').trim())
const kafka = new Kafka({
  brokers: (set('BOOTSTRAP') ?? '127.0.0.1:9092').split(','),
  ssl: set('CA_FILE') ? { ca: [readFileSync(set('CA_FILE'))] } : false,
  ...secret && { sasl: { mechanism: 'scram-sha-512', username: set('USERNAME'), password: secret } },
  logLevel: logLevel.ERROR,
})
const consumer = kafka.consumer({ groupId: `subscriber-${group}`, allowAutoTopicCreation: false })
const last = new Map() // the sequence of each run: what comes again after a failure is dropped
await consumer.connect()
await consumer.subscribe({ topic: 'runtime-distributions', fromBeginning: true })
await consumer.run({
  eachMessage: async ({ message }) => {
    const { run, sequence, event, run_time } = parsed(message) ?? {}
    if (event == null || sequence <= (last.get(run) ?? -1)) return
    last.set(run, sequence)
    const histogram = run_time?.histogram ?? []
    if (event.kind !== 'JobSubmitted' || !histogram.some(mass => mass > 0)) return
    const request = event.requested_time
    console.log(JSON.stringify({
      run,
      job: event.job_number,
      median: quantile(histogram, 0.5),
      q90: quantile(histogram, 0.9),
      within_request: request === undefined ? null : within(histogram, request),
    }))
  },
})
process.once('SIGINT', () => consumer.disconnect())
