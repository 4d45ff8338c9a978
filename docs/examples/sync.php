<?php
// Keep a site's search up to date:  php sync.php pages.jsonl
// Sends every page of a file of JSON lines, then removes the pages that are no longer in the file.

define('URL', rtrim(getenv('SITE_SEARCH_URL'), '/'));
const BATCH_PAGES = 500, BATCH_BYTES = 4000000, TRIES = 8;

function call(string $path, string $body, string $type = 'application/json'): array
{
    $key = getenv('SITE_SEARCH_KEY'); // A private key of the site.
    $headers = ["Authorization: Bearer $key", "Content-Type: $type"];
    $http = ['method' => 'POST', 'header' => $headers, 'content' => $body, 'ignore_errors' => true, 'timeout' => 120];
    for ($attempt = 1; $attempt <= TRIES; $attempt++) {
        $stream = @fopen(URL . $path, 'r', false, stream_context_create(['http' => $http]));
        $answer = $stream ? stream_get_contents($stream) : '';
        $head = $stream ? implode("\n", stream_get_meta_data($stream)['wrapper_data']) : '';
        $status = (int) (explode(' ', $head)[1] ?? 0);
        if ($status >= 200 && $status < 300) {
            return json_decode($answer, true, 512, JSON_THROW_ON_ERROR);
        }
        $problem = $status ? "$status $answer" : 'no response';
        in_array($status, [0, 429, 503]) || throw new Exception("$path: $problem");
        $wait = preg_match('/^Retry-After: *(\d+)/mi', $head, $found) ? (int) $found[1] : 2 ** $attempt;
        if ($attempt < TRIES) {
            fwrite(STDERR, "$path: $problem; trying again in $wait s\n");
            sleep($wait);
        }
    }
    throw new Exception("$path: gave up: $problem");
}

function batches($file): Generator
{
    [$batch, $pages] = ['', 0];
    while (($line = fgets($file)) !== false) {
        if ($pages === BATCH_PAGES || ($pages > 0 && strlen($batch . $line) > BATCH_BYTES)) {
            yield $batch;
            [$batch, $pages] = ['', 0];
        }
        $batch .= $line;
        $pages += trim($line) === '' ? 0 : 1;
    }
    if ($pages > 0) {
        yield $batch;
    }
}

$file = fopen($argv[1], 'r') ?: throw new Exception("cannot read $argv[1]"); // Or ask your CMS: one object per line.
$source = getenv('SITE_SEARCH_SOURCE') ?: 'website';
$sync = call('/api/v1/sync', json_encode(['source' => $source, 'replace' => true]))['sync']['id'];
$sent = 0;
foreach (batches($file) as $batch) {
    $sent += call("/api/v1/index/bulk?sync=$sync", $batch, 'application/x-ndjson')['indexed'];
}
$limit = getenv('MAX_REMOVED_PERCENT');
$done = call("/api/v1/sync/$sync/finish", json_encode(['max_removed_percent' => $limit === false ? 20 : (int) $limit]));
echo "$sent pages sent, {$done['removed']} removed\n";
