import java.io.DataInputStream;
import java.io.FileInputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternFlatSelectFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/**
 * Counts the matches of a sequence pattern in one window with Flink CEP, on one core.
 *
 * <p>Arguments: a file of events (little-endian pairs of ints: key, and a bit for each state that the event can be
 * bound to), the pattern ("1" an event, "+" a Kleene closure, such as "1+1"), the semantics (any, next, contiguous), and
 * the seconds after which it gives up. Prints the seconds from the first event to the last result, the matches, and the
 * most bytes of heap in use.
 */
public final class TrendCount {
    private static final AtomicLong matches = new AtomicLong();
    private static volatile long begun;
    private static int[] keys;
    private static int[] states;

    public static void main(String[] arguments) throws Exception {
        read(arguments[0]);
        count(arguments[1], arguments[2], Math.min(keys.length, 100)); // loads the classes
        matches.set(0);
        begun = 0;
        double most = Double.parseDouble(arguments[3]);
        Thread watch = new Thread(() -> watch(most));
        watch.setDaemon(true);
        watch.start();
        count(arguments[1], arguments[2], keys.length);
        print();
    }

    private static double seconds() {
        return begun == 0 ? 0 : (System.nanoTime() - begun) / 1e9;
    }

    private static void print() {
        System.out.println(
                "{\"seconds\": " + seconds() + ", \"matches\": " + matches.get() + ", \"heap\": " + heap.get() + "}");
    }

    private static void read(String file) throws Exception {
        try (DataInputStream input = new DataInputStream(new FileInputStream(file))) {
            ByteBuffer bytes = ByteBuffer.wrap(input.readAllBytes()).order(ByteOrder.LITTLE_ENDIAN);
            keys = new int[bytes.capacity() / 8];
            states = new int[keys.length];
            for (int at = 0; at < keys.length; at++) {
                keys[at] = bytes.getInt();
                states[at] = bytes.getInt();
            }
        }
    }

    private static void count(String elements, String semantics, int size) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
        environment.getConfig().enableObjectReuse();
        TypeInformation<Tuple2<Integer, Integer>> type = Types.TUPLE(Types.INT, Types.INT);
        GeneratorFunction<Long, Tuple2<Integer, Integer>> event = at -> {
            if (begun == 0) {
                begun = System.nanoTime();
            }
            return Tuple2.of(keys[at.intValue()], states[at.intValue()]);
        };
        DataGeneratorSource<Tuple2<Integer, Integer>> source =
                new DataGeneratorSource<>(event, size, RateLimiterStrategy.noOp(), type);
        CEP.pattern(
                        environment
                                .fromSource(source, WatermarkStrategy.noWatermarks(), "events")
                                .keyBy(one -> one.f0, Types.INT),
                        pattern(elements, semantics))
                .inProcessingTime()
                .flatSelect(new Count(), Types.LONG)
                .executeAndCollect()
                .forEachRemaining(nothing -> {});
    }

    private static Pattern<Tuple2<Integer, Integer>, ?> pattern(String elements, String semantics) {
        Pattern<Tuple2<Integer, Integer>, Tuple2<Integer, Integer>> made = null;
        for (int at = 0; at < elements.length(); at++) {
            String name = "s" + at;
            if (made == null) {
                made = Pattern.begin(name, AfterMatchSkipStrategy.noSkip());
            } else if (semantics.equals("any")) {
                made = made.followedByAny(name);
            } else if (semantics.equals("next")) {
                made = made.followedBy(name);
            } else {
                made = made.next(name);
            }
            final int bit = 1 << at;
            made = made.where(SimpleCondition.of(one -> (one.f1 & bit) != 0));
            if (elements.charAt(at) == '+') {
                made = made.oneOrMore();
                if (semantics.equals("any")) {
                    made = made.allowCombinations();
                } else if (semantics.equals("contiguous")) {
                    made = made.consecutive();
                }
            }
        }
        return made;
    }

    /** Counts a match, and gives nothing on. */
    private static final class Count implements PatternFlatSelectFunction<Tuple2<Integer, Integer>, Long> {
        @Override
        public void flatSelect(Map<String, List<Tuple2<Integer, Integer>>> match, Collector<Long> out) {
            matches.incrementAndGet();
        }
    }

    private static final AtomicLong heap = new AtomicLong();

    private static void watch(double most) {
        Runtime runtime = Runtime.getRuntime();
        while (true) {
            if (seconds() > most) {
                print();
                runtime.halt(0);
            }
            heap.accumulateAndGet(runtime.totalMemory() - runtime.freeMemory(), Math::max);
            try {
                Thread.sleep(20);
            } catch (InterruptedException stop) {
                return;
            }
        }
    }
}
