// SPDX-License-Identifier: MIT
// The same with Go: WHAT SIZE ITERATIONS prints nanoseconds for each iteration.
package main

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func cost(rounds int, work func()) float64 {
	from := time.Now()
	work()
	return float64(time.Since(from).Nanoseconds()) / float64(rounds)
}

func pingPong(rounds int) float64 {
	there, back := make(chan int), make(chan int)
	go func() {
		for i := 0; i < rounds; i++ {
			back <- <-there
		}
	}()
	return cost(rounds, func() {
		for i := 0; i < rounds; i++ {
			there <- 1
			<-back
		}
	})
}

func mutexFree(rounds int) float64 {
	var lock sync.Mutex
	return cost(rounds, func() {
		for i := 0; i < rounds; i++ {
			lock.Lock()
			lock.Unlock()
		}
	})
}

func mutexWanted(rounds int) float64 {
	const fibers = 100
	var lock sync.Mutex
	var all sync.WaitGroup
	sum := 0
	return cost(rounds, func() {
		for i := 0; i < fibers; i++ {
			all.Add(1)
			go func() {
				for round := 0; round < rounds/fibers; round++ {
					lock.Lock()
					sum++
					runtime.Gosched()
					lock.Unlock()
				}
				all.Done()
			}()
		}
		all.Wait()
	})
}

func condition(rounds int) float64 {
	var lock sync.Mutex
	changed := sync.NewCond(&lock)
	ping := true
	var both sync.WaitGroup
	play := func(mine bool) {
		for i := 0; i < rounds; i++ {
			lock.Lock()
			for ping != mine {
				changed.Wait()
			}
			ping = !mine
			changed.Signal()
			lock.Unlock()
		}
		both.Done()
	}
	both.Add(2)
	return cost(rounds, func() {
		go play(true)
		go play(false)
		both.Wait()
	})
}

// A channel with a capacity is what Go has for a semaphore.
func semaphores(rounds int) float64 {
	ping, pong := make(chan struct{}, 1), make(chan struct{}, 1)
	go func() {
		for i := 0; i < rounds; i++ {
			<-ping
			pong <- struct{}{}
		}
	}()
	return cost(rounds, func() {
		for i := 0; i < rounds; i++ {
			ping <- struct{}{}
			<-pong
		}
	})
}

func selectOf4(rounds int) float64 {
	var from [4]chan int
	for i := range from {
		from[i] = make(chan int)
	}
	go func() {
		for i := 0; i < rounds; i++ {
			from[i%4] <- 1
		}
	}()
	return cost(rounds, func() {
		for i := 0; i < rounds; i++ {
			select {
			case <-from[0]:
			case <-from[1]:
			case <-from[2]:
			case <-from[3]:
			}
		}
	})
}

// Of a set that is not known before the program runs.
func selectOfRange(rounds int) float64 {
	var from [8]chan int
	cases := make([]reflect.SelectCase, len(from))
	for i := range from {
		from[i] = make(chan int)
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(from[i])}
	}
	go func() {
		for i := 0; i < rounds; i++ {
			from[i%len(from)] <- 1
		}
	}()
	return cost(rounds, func() {
		for i := 0; i < rounds; i++ {
			reflect.Select(cases)
		}
	})
}

func latches(rounds int) float64 {
	return cost(rounds, func() {
		for i := 0; i < rounds; i++ {
			var done sync.WaitGroup
			done.Add(10)
			for each := 0; each < 10; each++ {
				go done.Done()
			}
			done.Wait()
		}
	})
}

// Go has none: each reader has a channel of its own.
func broadcasts(items int) float64 {
	var told [10]chan int
	var readers sync.WaitGroup
	sums := [10]int{}
	for i := range told {
		told[i] = make(chan int, 64)
		readers.Add(1)
		go func(i int) {
			for item := range told[i] {
				sums[i] += item
			}
			readers.Done()
		}(i)
	}
	return cost(items, func() {
		for i := 0; i < items; i++ {
			for _, to := range told {
				to <- 1
			}
		}
		for _, to := range told {
			close(to)
		}
		readers.Wait()
	})
}

func fourToFour(messages int) float64 {
	items := make(chan int, 64)
	var producers, consumers sync.WaitGroup
	producers.Add(4)
	consumers.Add(4)
	return cost(messages, func() {
		for i := 0; i < 4; i++ {
			go func() {
				for n := 0; n < messages/4; n++ {
					items <- 1
				}
				producers.Done()
			}()
			go func() {
				for range items {
				}
				consumers.Done()
			}()
		}
		producers.Wait()
		close(items)
		consumers.Wait()
	})
}

type question struct {
	number int
	answer chan int
}

func request(rounds int) float64 {
	questions := make(chan question, 64)
	go func() {
		for next := range questions {
			next.answer <- next.number + 1
		}
	}()
	return cost(rounds, func() {
		for i := 0; i < rounds; i++ {
			next := question{1, make(chan int, 1)}
			questions <- next
			<-next.answer
		}
	})
}

const workers = 2

// Goroutines that take jobs from a channel.
func pool(jobs chan func(), over *sync.WaitGroup) {
	over.Add(workers)
	for i := 0; i < workers; i++ {
		go func() {
			for next := range jobs {
				next()
			}
			over.Done()
		}()
	}
}

func jobsInVector(count int) float64 {
	jobs := make(chan func(), 1024)
	results := make([]int, count)
	var over sync.WaitGroup
	pool(jobs, &over)
	return cost(count, func() {
		for i := 0; i < count; i++ {
			i := i
			jobs <- func() { results[i] = i * 2 }
		}
		close(jobs)
		over.Wait()
	})
}

func submit(jobs chan func(), i int) chan int {
	answer := make(chan int, 1)
	jobs <- func() { answer <- i * 2 }
	return answer
}

func jobsWithFutures(count int) float64 {
	jobs := make(chan func(), 1024)
	answers := make([]chan int, count)
	var over sync.WaitGroup
	pool(jobs, &over)
	return cost(count, func() {
		for i := 0; i < count; i++ {
			answers[i] = submit(jobs, i)
		}
		for i := 0; i < count; i++ {
			<-answers[i]
		}
	})
}

func oneAtATime(count int) float64 {
	jobs := make(chan func(), 1024)
	var over sync.WaitGroup
	pool(jobs, &over)
	return cost(count, func() {
		for i := 0; i < count; i++ {
			<-submit(jobs, i)
		}
	})
}

func computeFor(span time.Duration) {
	for from := time.Now(); time.Since(from) < span; {
	}
}

// Microseconds from the gift of a job to its end, of the slowest of 99 in 100: all compute for two,
// but one of them for 50,000. Each job is a goroutine: a channel would hold back who gives them.
func besideLong(count int) float64 {
	taken := make([]float64, count)
	var over sync.WaitGroup
	over.Add(count)
	for i := 0; i < count; i++ {
		go func(i int, given time.Time) {
			if i == count/10 {
				computeFor(50 * time.Millisecond)
			} else {
				computeFor(2 * time.Microsecond)
			}
			taken[i] = float64(time.Since(given).Nanoseconds()) / 1e3
			over.Done()
		}(i, time.Now())
	}
	over.Wait()
	sort.Float64s(taken)
	return taken[count*99/100]
}

func processorTime() time.Duration {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Milliseconds of the processor; each sleeps as long as in the other programs.
func sleepers(count int) float64 {
	from := processorTime()
	var all sync.WaitGroup
	all.Add(count)
	for i := 0; i < count; i++ {
		go func(i int) {
			time.Sleep(time.Duration(uint64(i)*2654435761%1000+1) * time.Millisecond)
			all.Done()
		}(i)
	}
	all.Wait()
	return float64((processorTime() - from).Nanoseconds()) / 1e6
}

func sumOf(first, size int, answer chan int) {
	if size <= 1 {
		answer <- first
		return
	}
	parts := make(chan int)
	for i := 0; i < 10; i++ {
		go sumOf(first+i*(size/10), size/10, parts)
	}
	sum := 0
	for i := 0; i < 10; i++ {
		sum += <-parts
	}
	answer <- sum
}

// One goroutine for each number up to size, a power of ten, and ten for one above them.
func tree(size int) float64 {
	answer := make(chan int)
	return cost(size, func() {
		go sumOf(0, size, answer)
		if <-answer != size*(size-1)/2 {
			panic("a wrong sum")
		}
	})
}

func main() {
	sized := map[string]func(int) float64{"sleepers": sleepers, "tree": tree}
	subjects := map[string]func(int) float64{
		"ping_pong": pingPong, "mutex_free": mutexFree, "mutex_wanted": mutexWanted,
		"condition": condition, "semaphores": semaphores, "select_of_4": selectOf4,
		"select_of_range": selectOfRange, "latches": latches, "broadcasts": broadcasts,
		"four_to_four": fourToFour, "request": request, "two_threads": pingPong,
		"jobs": jobsInVector, "jobs_futures": jobsWithFutures,
		"one_job": oneAtATime, "beside_long": besideLong,
	}
	if len(os.Args) == 4 {
		if measure, known := subjects[os.Args[1]]; known {
			rounds, _ := strconv.Atoi(os.Args[3])
			fmt.Printf("%.3f\n", measure(rounds))
			return
		}
		if measure, known := sized[os.Args[1]]; known {
			size, _ := strconv.Atoi(os.Args[2])
			fmt.Printf("%.3f\n", measure(size))
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: go_bench WHAT SIZE ITERATIONS")
	os.Exit(2)
}
